"""What happened in a launch, read from the emulator's trace (LADDER_TRACE; emulator/report/trace_file.h says what is in it).

All times are virtual: cycles of the emulator, which order its events. They are no chip's time.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tools.terminal import Refusal

VIRTUAL_TIME = "virtual time (cycles of the emulator, no chip's)"
MAP_BYTES = 128                # a tensor map among the kernel's parameters: the rungs have A's, B's, D's, in this order
MAPS = {0: "A", MAP_BYTES: "B", 2 * MAP_BYTES: "D"}
# What a warp waits for, other than mbarriers.
WAITS = {"barrier": "CTA barrier", "cluster_barrier": "cluster barrier", "lanes": "lanes of its warp",
         "tmem_alloc": "tcgen05.alloc", "tmem_dealloc": "tcgen05.dealloc", "tmem_access": "tensor-memory accesses",
         "bulk_group": "bulk groups", "copy_group": "cp.async groups", "wgmma": "wgmma", "registers": "registers",
         "time": "sleep"}
# What a warp issues -> the kind of Span that it makes.
ISSUES = {"tma_load": "load", "tma_store": "store", "mma": "mma", "wgmma": "mma", "commit": "commit", "tmem_load": "tmem_load",
          "tmem_store": "tmem_store"}


@dataclass
class Span:
    """Something that begins and ends in a CTA."""
    kind: str            # wait, load, mma, commit, store, tmem_load, tmem_store, phase
    cta: int             # rank in the cluster: of a load and a commit the one that receives it, else the one that issued it
    begin: int
    source: str = ""     # "step03_warpspec/blackwell.cu:89 (in ptx/tma.cuh:60)"
    warp: int = 0        # that issued it, or waits
    lanes: int = 0       # of a wait: mask
    by: int = 0          # rank of the CTA that issued it
    operation: int = 0   # its number in the cluster; of a phase the phase's
    barrier: str = ""    # a load's, a commit's, a phase's; what a wait is for
    parity: int = 0      # of a wait for an mbarrier, of a phase
    operand: str = ""    # of a load or a store: A, B, D
    offset: int = 0      # in shared memory; of an MMA: where B begins
    bytes: int = 0
    at: tuple = ()       # coordinates of the box
    columns: tuple = ()  # of tensor memory: first, how many
    end: int = None      # None: the CTA's end came first
    read: int = None     # when it had read its sources
    gave_up: bool = False
    phase: int = None    # of its barrier: the one that a load's bytes count in, that ended a wait
    k_tile: int = None   # loads and MMAs: which K tile this is for its CTA

    @property
    def stage(self):
        """The place in the ring: the index of the barrier."""
        found = re.search(r"\[(\d+)\]", self.barrier)
        return int(found[1]) if found else 0


@dataclass
class Cta:
    rank: int
    cluster: int
    index: tuple
    begin: int
    end: int = 0
    spans: list = field(default_factory=list)
    issued: Counter = field(default_factory=Counter)  # (warp, kind of span, lane) -> how often

    def of(self, *kinds):
        return [span for span in self.spans if span.kind in kinds]

    def warps(self):
        return sorted({warp for warp, _, _ in self.issued})

    def role(self, warp):
        """By what the warp issues in this CTA: TMA loads make it a producer, MMAs an MMA warp, else loads of tensor memory
        an epilogue warp. The MMA warp of a pair's second CTA has nothing to do."""
        kinds = {kind for issuer, kind, _ in self.issued if issuer == warp}
        roles = [role for role, kind in (("producer", "load"), ("mma", "mma")) if kind in kinds]
        return " and ".join(roles) or ("epilogue" if "tmem_load" in kinds else "idle")

    def leader(self, warp):
        """The lane that issues the asynchronous operations; 0 where none does."""
        lanes = Counter()
        for (issuer, _, lane), times in self.issued.items():
            if issuer == warp and lane >= 0:
                lanes[lane] += times
        return lanes.most_common(1)[0][0] if lanes else 0


@dataclass
class Launch:
    kernel: str
    ctas: list

    def cluster(self, number):
        return [cta for cta in self.ctas if cta.cluster == number]


def launches(text):
    """The launches of a trace."""
    return [_launch(part.split("\n")) for part in re.split(r"^launch .*\n", text, flags=re.MULTILINE)[1:]]


def _launch(lines):
    kernel, barriers, sources, events = "", {}, {}, defaultdict(list)
    for line in filter(None, lines):
        words = line.split(" ")
        if words[0] == "kernel":
            kernel = line.split(" ", 1)[1]
        elif words[0] == "barrier":
            barriers[int(words[1], 16)] = line.split(" ", 2)[2]
        elif words[0] == "source":
            sources[int(words[1])] = line.split(" ", 2)[2]
        else:
            events[int(words[1])].append(words)
    ctas = []
    for cluster in sorted(events):
        ctas += _Cluster(cluster, barriers, sources).read(events[cluster])
    return Launch(kernel, ctas)


class _Cluster:
    """Reads a cluster's events in order and pairs beginnings with ends."""

    def __init__(self, number, barriers, sources):
        self.number, self.barriers, self.sources = number, barriers, sources
        self.ctas = {}
        self.waiting = {}                   # (rank, warp, lanes) -> Span
        self.running = {}                   # operation -> its Spans, one for each CTA that it shows in
        self.phases = {}                    # (rank, barrier) -> Span of the phase that is running
        self.k_tiles = defaultdict(dict)    # rank -> (barrier, phase) -> number

    def read(self, events):
        for words in events:
            clock, rank, warp, lane, source, event = *map(int, words[0:1] + words[2:5]), self.sources[int(words[5])], words[6]
            if event in ISSUES or event.startswith("wait_"):
                self.ctas[rank].issued[warp, ISSUES.get(event, "wait"), lane] += 1
            self.one(clock, rank, warp, source, event, [int(word, 0) for word in words[7:]])
        last = int(events[-1][0])
        for cta in self.ctas.values():
            cta.end = cta.end or last
            for span in cta.spans:
                if span.kind == "mma":
                    self.find_k_tile(cta, span)
        return [self.ctas[rank] for rank in sorted(self.ctas)]

    def name(self, address):
        return self.barriers.get(address & 0xFFFFFF, f"mbarrier at {address & 0xFFFFFF:#x}")

    def add(self, kind, cta, begin, source, warp, by, **rest):
        span = Span(kind, cta, begin, source, warp, by=by, **rest)
        self.ctas[cta].spans.append(span)
        return span

    def one(self, clock, rank, warp, source, event, values):
        if event == "cta_start":
            self.ctas[rank] = Cta(rank, self.number, tuple(values), clock)
        elif event == "cta_exit":
            self.ctas[rank].end = clock
        elif event.startswith("wait_"):
            lanes, what, parity = values
            kind = event[len("wait_"):]
            barrier = self.name(what) if kind == "mbarrier" else WAITS[kind]
            self.waiting[rank, warp, lanes] = self.add("wait", rank, clock, source, warp, rank, lanes=lanes, barrier=barrier,
                                                       parity=parity if kind == "mbarrier" else None)
        elif event in ("resumed", "gave_up"):
            span = self.waiting.pop((rank, warp, values[0]))
            span.end, span.gave_up = clock, event == "gave_up"
            if span.parity is not None and not span.gave_up:
                span.phase = self.phases[rank, span.barrier].operation - 1
        elif event == "mbarrier_init":
            self.begin_phase(values[0], clock, source, 0)
        elif event == "phase":
            address, number = values
            key = address >> 24, self.name(address)
            if key in self.phases:
                ended = self.phases[key]
                ended.end, ended.source, ended.warp, ended.by = clock, source, warp, rank
            self.begin_phase(address, clock, "", number + 1)
        elif event == "tma_load":
            operation, to, offset, size, barrier, *box = values
            span = self.add("load", to, clock, source, warp, rank, operation=operation, offset=offset, bytes=size,
                            barrier=self.name(barrier), operand=MAPS.get(box[0], "") if box else "", at=tuple(box[1:]))
            if (running := self.phases.get((barrier >> 24, span.barrier))) is not None:
                span.phase = running.operation
            tiles = self.k_tiles[to]
            span.k_tile = tiles.setdefault((span.barrier, span.phase), len(tiles))
            self.running.setdefault(operation, []).append(span)
        elif event == "tma_load_shown":
            for span in self.running[values[0]]:
                if span.cta == values[1]:
                    span.end = clock
        elif event == "tma_store":
            operation, offset, size, *box = values
            self.running[operation] = [self.add("store", rank, clock, source, warp, rank, operation=operation, offset=offset,
                                                bytes=size, operand=MAPS.get(box[0], "") if box else "", at=tuple(box[1:]))]
        elif event in ("mma", "wgmma"):
            operation, _, b = values[:3]
            self.running[operation] = [self.add("mma", rank, clock, source, warp, rank, operation=operation, offset=b)]
        elif event == "commit":
            operation, barrier = values
            span = self.add("commit", barrier >> 24, clock, source, warp, rank, operation=operation, barrier=self.name(barrier))
            self.running.setdefault(operation, []).append(span)
        elif event == "commit_shown":
            for span in self.running[values[0]]:
                if span.cta == values[1] >> 24:
                    span.end = clock
        elif event in ("tmem_load", "tmem_store"):
            self.running[values[0]] = [self.add(event, rank, clock, source, warp, rank, operation=values[0],
                                                columns=tuple(values[1:]))]
        elif event.endswith("_read"):
            for span in self.running[values[0]]:
                span.read = clock
        elif event.endswith("_shown"):
            for span in self.running[values[0]]:
                span.end = clock

    def begin_phase(self, address, clock, source, number):
        rank, name = address >> 24, self.name(address)
        self.phases[rank, name] = self.add("phase", rank, clock, source, 0, rank, barrier=name, operation=number,
                                           parity=number % 2)

    def find_k_tile(self, cta, mma):
        """The K tile whose bytes lay where the MMA's B begins when it was issued."""
        there = [load for load in cta.of("load") if load.offset <= mma.offset < load.offset + load.bytes
                 and load.end is not None and load.end <= mma.begin]
        if there:
            load = max(there, key=lambda each: each.end)
            mma.k_tile, mma.barrier = load.k_tile, load.barrier


def one_launch(text):
    found = [launch for launch in launches(text) if launch.ctas]
    if len(found) != 1:
        raise Refusal(f"The trace has {len(found)} launches; expected one.")
    return found[0]


def spread(things, extent):
    """Rows of things that do not overlap, first come first served. `extent`: begin and end of one."""
    rows = []
    for thing in sorted(things, key=extent):
        row = next((row for row in rows if extent(row[-1])[1] <= extent(thing)[0]), None)
        if row is None:
            rows.append([thing])
        else:
            row.append(thing)
    return rows
