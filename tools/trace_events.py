"""A timeline as Chrome trace-event JSON, which ui.perfetto.dev opens.

A process for each CTA; in it a track for each warp (its waits), for the TMA loads that tell one mbarrier, for the tensor core,
commits, tensor-memory accesses, TMA stores, and for each mbarrier (its phases). The slices of a track nest, so what
overlaps is spread over several tracks of one name. One cycle of virtual time is shown as a microsecond, the format's unit.
Arrows lead from a phase that ended to the waits that it ended.
"""

import json
from collections import defaultdict

from tools.timeline import VIRTUAL_TIME, spread

CLOCK = f"{VIRTUAL_TIME}: 1 us shown is 1 cycle. It orders the emulator's events; it measures nothing"
ABOUT = 1  # a process that says what the clock is. Numbers: Perfetto takes 0 for the idle process, and threads as the system's
ORDER = ["wait", "load", "mma", "commit", "tmem_load", "tmem_store", "store", "phase"]  # of a process's tracks


def track_of(cta, span):
    """Where a span belongs: the name of its track, and what sorts it among those of its kind."""
    if span.kind == "wait":
        own = span.lanes >> cta.leader(span.warp) & 1
        return f"warp {span.warp}: {cta.role(span.warp)}" + ("" if own else ", other lanes"), (span.warp, not own)
    if span.kind == "load":
        return f"TMA loads for {span.barrier}", (span.barrier,)
    if span.kind == "mma":
        return "tensor core", ()
    if span.kind == "store":
        return "TMA stores", ()
    if span.kind == "phase":
        return span.barrier, (span.barrier,)
    return {"commit": ("commits", ()), "tmem_load": (f"tcgen05.ld, warp {span.warp}", (span.warp,)),
            "tmem_store": (f"tcgen05.st, warp {span.warp}", (span.warp,))}[span.kind]


def title(span):
    if span.kind == "wait":
        return f"wait {span.barrier}" + ("" if span.parity is None else f", parity {span.parity}")
    if span.kind == "load":
        return f"load {span.operand}".strip() + ("" if span.k_tile is None else f", K tile {span.k_tile}")
    if span.kind == "mma":
        return "MMA" + ("" if span.k_tile is None else f", K tile {span.k_tile}")
    if span.kind == "commit":
        return f"commit to {span.barrier}"
    if span.kind == "store":
        return f"store {span.operand}".strip()
    if span.kind == "phase":
        return f"phase {span.operation}, parity {span.parity}"
    return span.kind.replace("tmem_load", "tcgen05.ld").replace("tmem_store", "tcgen05.st")


def details(span):
    """What Perfetto shows of a slice that is clicked on."""
    told = {"source": span.source} if span.source else {}
    if span.kind == "wait":
        told |= {"lanes": f"{span.lanes:#010x}"}
        if span.gave_up:
            told["ended by"] = "the time limit of try_wait: it asks again"
        elif span.phase is not None:
            told["ended by"] = f"the end of phase {span.phase}"
    if span.kind in ("load", "store"):
        told |= {"bytes": span.bytes, "shared memory": f"{span.offset:#x}"}
        if span.at:
            told["box at"] = ", ".join(map(str, span.at))
    if span.kind == "load":
        told |= {"mbarrier": span.barrier, "stage": span.stage, "phase": span.phase, "issued by": f"CTA {span.by}, warp {span.warp}"}
    if span.kind in ("mma", "commit", "store", "tmem_load", "tmem_store"):
        told["issued by"] = f"CTA {span.by}, warp {span.warp}"
    if span.kind == "mma":
        told |= {"B at": f"{span.offset:#x}"} | ({"stage": span.stage} if span.k_tile is not None else {})
    if span.kind == "phase" and span.end is not None:
        told["ended by"] = f"CTA {span.by}, warp {span.warp}"
    if span.columns:
        told["columns"] = f"{span.columns[0]} to {sum(span.columns) - 1}"
    if span.read is not None:
        told["sources read at"] = span.read
    if span.operation and span.kind != "phase":
        told["operation"] = span.operation
    return told | ({} if span.end is not None else {"ended": "not before the CTA did"})


class Writer:
    def __init__(self):
        self.events, self.flows = [], 0

    def meta(self, what, pid, tid=0, **values):
        self.events.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": values})

    def slice(self, pid, tid, span, end):
        self.events.append({"ph": "X", "name": title(span), "cat": span.kind, "pid": pid, "tid": tid, "ts": span.begin,
                            "dur": (end if span.end is None else span.end) - span.begin, "args": details(span)})

    def cta(self, pid, cta):
        x, y, z = cta.index
        self.meta("process_name", pid, name=f"CTA ({x},{y}{f',{z}' if z else ''}) of cluster {cta.cluster}")
        self.meta("process_labels", pid, labels=VIRTUAL_TIME)
        self.meta("process_sort_index", pid, sort_index=pid)
        tracks = defaultdict(list)
        for span in cta.spans:
            name, key = track_of(cta, span)
            tracks[ORDER.index(span.kind), key, name].append(span)
        tid, places = 1000 * pid, {}
        for (_, _, name), spans in sorted(tracks.items()):
            for track in spread(spans, lambda span: (span.begin, cta.end if span.end is None else span.end)):
                tid += 1
                self.meta("thread_name", pid, tid, name=name)
                self.meta("thread_sort_index", pid, tid, sort_index=tid)
                for span in track:
                    self.slice(pid, tid, span, cta.end)
                    if span.kind == "phase":
                        places[span.barrier, span.operation] = tid, span
                    elif span.kind == "wait":
                        places[id(span)] = tid, span
        # An arrow starts and ends inside a slice: half a cycle before both end.
        for span in cta.of("wait"):
            origin = places.get((span.barrier, span.phase))
            if origin is None or min(span.end - span.begin, origin[1].end - origin[1].begin) < 1:
                continue
            self.flows += 1
            arrow = {"name": "ends", "cat": "phase", "id": self.flows, "pid": pid}
            self.events.append({**arrow, "ph": "s", "tid": origin[0], "ts": origin[1].end - .5})
            self.events.append({**arrow, "ph": "f", "bp": "e", "tid": places[id(span)][0], "ts": span.end - .5})


def json_text(ctas, about):
    """`about`: what is told of the run, name -> text."""
    writer = Writer()
    writer.meta("process_name", ABOUT, name=VIRTUAL_TIME)
    writer.meta("process_sort_index", ABOUT, sort_index=ABOUT)
    writer.meta("thread_name", ABOUT, 1000 * ABOUT, name="the run")
    end = max(cta.end for cta in ctas)
    writer.events.append({"ph": "X", "name": CLOCK, "cat": "about", "pid": ABOUT, "tid": 1000 * ABOUT, "ts": 0, "dur": end, "args": about})
    for pid, cta in enumerate(ctas, ABOUT + 1):
        writer.cta(pid, cta)
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in writer.events)
    other = json.dumps({"clock": CLOCK, **about})
    return f'{{"displayTimeUnit":"ms","otherData":{other},\n"traceEvents":[\n{lines}\n]}}\n'
