"""A CTA's timeline as a picture: the ring of stages between the warp that loads and the warp that multiplies.

What is drawn is in order, but not to scale: the time between two events is drawn by its logarithm, and what comes behind
the last MMA has a share of the width of its own. Colour says the stage, a number the K tile.
"""

from math import log2

from tools.canvas import FAINT, INK, WIDTH, Canvas, short
from tools.terminal import Refusal, plural
from tools.timeline import VIRTUAL_TIME, spread

LEFT, RIGHT = 170, 12
OUT_SHARE, STORES_SHARE = .2, .3  # of the width, for what comes behind the last MMA; where TMA stores do
STAGES = ["#2f7ed8", "#e08a00", "#1a9e6b", "#c2519e", "#7a6ad0", "#b8502a", "#5d8a00", "#3a9fb5"]
READ, STORED, EVEN, ODD = "#8d8d86", "#4a4a46", "#e4e4df", "#c6c6c0"
PALE, PALER, PALEST = (f' fill-opacity="{share}"' for share in (".45", ".25", ".1"))
WAITING = "url(#wait)"
PATTERN = ('<defs><pattern id="wait" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
           '<rect width="4" height="4" fill="#eeeeea"/><path d="M0 0V4" stroke="#c9c9c4" stroke-width="3"/></pattern></defs>')
DOTTED, CENTRED = ' stroke-width="2" stroke-dasharray="2 2"', ' text-anchor="middle"'


class Axis:
    """Virtual time -> x, for the times of events."""

    def __init__(self, times, split, share):
        self.x = {}
        width = WIDTH - LEFT - RIGHT
        self.place(sorted(time for time in times if time <= split), LEFT, width * (1 - share))
        self.place(sorted(time for time in times if time >= split), LEFT + width * (1 - share), width * share)

    def place(self, times, at, width):
        gaps = [1 + log2(after - before) for before, after in zip(times, times[1:])]
        scale = width / (sum(gaps) or 1)
        for time, gap in zip(times, [0, *gaps]):
            at += gap * scale
            self.x[time] = at


class Facts:
    """What there is to draw of a CTA."""

    def __init__(self, cta):
        self.cta = cta
        self.loads, self.mmas = cta.of("load"), [mma for mma in cta.of("mma") if mma.k_tile is not None]
        self.issuers = [warp for warp in cta.warps() if cta.role(warp) not in ("epilogue", "idle")]
        self.full = {load.stage: load.barrier for load in self.loads}  # stage -> the barrier that loads tell
        self.stages = sorted(self.full)
        # Besides, commits tell: an accumulator's barrier, for which warps wait that issue neither loads nor MMAs; a stage's.
        out = {wait.barrier for wait in cta.of("wait") if wait.warp not in self.issuers}
        told = {span.barrier: span.stage for span in cta.of("commit")}
        self.accumulators = sorted(set(told) & out)
        self.empty = {stage: barrier for barrier, stage in told.items() if barrier not in out}
        # Threads tell what is left: that an accumulator may be overwritten, which tile is next.
        self.others = sorted({phase.barrier for phase in cta.of("phase") if phase.end is not None}
                             - {*self.full.values(), *self.empty.values(), *self.accumulators})
        self.begin = min(load.begin for load in self.loads)
        self.split = max([self.end(span) for span in self.mmas + cta.of("phase")
                          if span.kind == "mma" or span.barrier in self.accumulators and span.end is not None] or [cta.end])
        self.tiles = sorted({load.k_tile for load in self.loads})
        self.waits = {warp: [wait for wait in self.merged(warp, cta.leader(warp))
                             if self.stage(wait[-1].barrier) is not None or wait[-1].barrier in self.others]
                      for warp in self.issuers}
        # Of the epilogue a lane that is not busy with loads or MMAs before.
        self.waits_out = {warp: [wait for wait in self.merged(warp, 31) if wait[-1].barrier in self.accumulators]
                          for warp in cta.warps()}
        # Those that carry the accumulator out; in the first rungs every warp is one of them.
        self.carriers = [warp for warp in cta.warps()
                         if self.waits_out[warp] or any(load.warp == warp for load in cta.of("tmem_load"))]

    def end(self, span):
        return self.cta.end if span.end is None else span.end

    def stage(self, barrier):
        """The stage that the barrier announces; None when it is another barrier."""
        return next((stage for stage, name in [*self.full.items(), *self.empty.items()] if name == barrier), None)

    def merged(self, warp, lane):
        """The lane's waits for mbarriers. One that a time limit ended goes on in the next: the lane asks again."""
        whole = []
        for wait in (each for each in self.cta.of("wait") if each.warp == warp and each.lanes >> lane & 1):
            if wait.parity is None:
                continue
            again = whole and whole[-1][-1].gave_up and whole[-1][-1].barrier == wait.barrier
            whole[-1].append(wait) if again else whole.append([wait])
        return whole

    def work(self, tile):
        """Begin and end of a K tile's MMAs; nothing when it has none."""
        mmas = [mma for mma in self.mmas if mma.k_tile == tile]
        return (min(mma.begin for mma in mmas), max(map(self.end, mmas)), len(mmas)) if mmas else None

    def times(self):
        spans = [(span, span) for span in self.loads + self.mmas + self.cta.of("tmem_load", "store", "phase")]
        spans += [(whole[0], whole[-1]) for waits in [*self.waits.values(), *self.waits_out.values()] for whole in waits]
        times = {time for first, last in spans for time in (first.begin, self.end(last))} | {self.split, self.cta.end}
        return {max(time, self.begin) for time in times}


class Picture(Canvas):
    def __init__(self, facts):
        super().__init__()
        self.facts, self.cta = facts, facts.cta
        self.parts.append(PATTERN)
        self.y = 80
        share = STORES_SHARE if self.cta.of("store") else OUT_SHARE
        self.axis = Axis(facts.times(), facts.split, share if self.cta.end > facts.split else 0)
        self.colour = {stage: STAGES[i % len(STAGES)] for i, stage in enumerate(facts.stages)} | {None: INK}
        self.issuer_y, self.barrier_y = {}, {}

    # ---- ink ----------------------------------------------------------------------------------------------------------
    def at(self, time):
        return self.axis.x[max(time, self.facts.begin)]

    def rect(self, x, y, width, height, fill, tip="", extra=""):
        super().rect(x, y, max(width, 1.5), height, fill, tip, extra)

    def bar(self, begin, end, y, height, fill, tip="", extra=""):
        """From one time to another; a tip says which, in cycles."""
        self.rect(self.at(begin), y, self.at(end) - self.at(begin), height, fill, tip and f"{tip}: {begin} to {end}", extra)

    def label(self, text, y, size=11, fill=INK):
        self.text(LEFT - 8, y, text, size, fill, ' text-anchor="end"')

    def inside(self, begin, end, y, text, size, fill, each=6, extra=""):
        """A text in the middle of a bar, where it fits."""
        if self.at(end) - self.at(begin) >= each * len(text):
            self.text((self.at(begin) + self.at(end)) / 2, y, text, size, fill, CENTRED + extra)

    # ---- what it shows ------------------------------------------------------------------------------------------------
    def head(self, case):
        facts = self.facts
        ring = f" through {len(facts.stages)} stages" if len(facts.stages) > 1 else ""
        variant = f" ({case.variant})" if case.variant else ""
        title = f"{case.rung}{variant}: CTA ({self.cta.index[0]},{self.cta.index[1]}), {plural(len(facts.tiles), 'K tile')}{ring}"
        self.text(14, 24, title, 15, extra=' font-weight="600"')
        others = " Paler: loaded by another CTA." if any(load.by != self.cta.rank for load in facts.loads) else ""
        self.text(14, 42, f"{VIRTUAL_TIME}. {case.shape}, schedule {case.schedule}. The order is right; lengths are not to scale."
                  f"{others}", 11, FAINT)
        colour, x, y = STAGES[0], 14, 52
        for what in ("loads of A and B", "full, unused", "MMAs", "a lane waits", "issues loads or MMAs", "a phase ends, wakes a lane"):
            if what.startswith("full"):
                self.line(x, y + 6, x + 18, y + 6, colour, DOTTED)
            elif what.startswith("issues"):
                self.rect(x + 14, y - 1, 3, 13, colour)
            elif what.startswith("a phase"):
                self.line(x + 15, y - 1, x + 15, y + 12, colour, ' stroke-width="1.5"')
            else:
                self.rect(x, y, 18, 11, WAITING if "waits" in what else colour, "", PALE if "loads" in what else "")
            self.text(x + 23, y + 10, what, 11, FAINT)
            x += 38 + 6 * len(what)

    def issuer(self, warp):
        """A warp that loads or multiplies: its waits and, as a coloured tick, each K tile's first load and first MMA."""
        y = self.issuer_y[warp] = self.y
        self.label(f"{self.cta.role(warp)}, warp {warp}", y + 12)
        for wait in self.facts.waits[warp]:
            barrier, begin, end = wait[-1].barrier, wait[0].begin, self.facts.end(wait[-1])
            self.bar(begin, end, y + 2, 13, WAITING, f"waits for {barrier}, parity {wait[-1].parity}")
            self.inside(begin, end, y + 12, barrier, 9, self.colour[self.facts.stage(barrier)], 5, ' font-weight="600"')
        firsts = {}
        for span in self.facts.loads + self.facts.mmas:
            if (span.by, span.warp) == (self.cta.rank, warp):
                firsts.setdefault((span.kind, span.k_tile), span)
        for (kind, tile), span in firsts.items():
            self.rect(self.at(span.begin) - 1.5, y, 3, 17, self.colour[span.stage], f"issues the {kind} of K tile {tile}: {span.begin}",
                      ' stroke="#222" stroke-width=".6"' if kind == "mma" else "")
        self.y += 24

    def stage(self, stage):
        """What is in a stage: bytes on their way, bytes that nobody has used yet, MMAs at work on them; and its barriers."""
        facts, y, colour = self.facts, self.y, self.colour[stage]
        self.label(f"stage {stage}" if len(facts.stages) > 1 else "the buffer", y + 15)
        for tile in facts.tiles:
            boxes = sorted((load for load in facts.loads if (load.stage, load.k_tile) == (stage, tile)), key=lambda box: box.operand)
            if not boxes:
                continue
            begin, end, work = min(box.begin for box in boxes), max(map(facts.end, boxes)), facts.work(tile)
            if work and work[0] > end:
                self.line(self.at(end), y + 11, self.at(work[0]), y + 11, colour, DOTTED)
            self.bar(begin, end, y + 1, 19, colour, "", PALEST)
            for i, box in enumerate(boxes):
                own = box.by == self.cta.rank
                self.bar(box.begin, facts.end(box), y + 1 + i * 20 / len(boxes), 20 / len(boxes) - 1, colour,
                         f"load of {box.operand}, K tile {tile}" + ("" if own else f", by CTA {box.by}"), PALE if own else PALER)
            self.inside(begin, end, y + 15, str(tile), 10, INK)
            if work:
                self.bar(*work[:2], y + 1, 19, colour, f"{plural(work[2], 'MMA')} of K tile {tile}")
                self.inside(*work[:2], y + 15, str(tile), 10, "#fff")
        self.y += 23
        for barrier in filter(None, (facts.full[stage], facts.empty.get(stage))):
            self.barrier(barrier, colour)
        self.y += 5

    def barrier(self, barrier, colour):
        """Its phases by number, one shade for each parity."""
        y = self.barrier_y[barrier] = self.y
        self.label(barrier, y + 8, 9, FAINT)
        for phase in (each for each in self.cta.of("phase") if each.barrier == barrier):
            end = self.facts.end(phase)
            self.bar(phase.begin, end, y + 1, 8, ODD if phase.parity else EVEN, f"phase {phase.operation}")
            if phase.end is not None:
                self.line(self.at(end), y, self.at(end), y + 10, colour, ' stroke-width="2"')
            self.inside(phase.begin, end, y + 7.5, str(phase.operation), 7.5, FAINT, 10)
        self.y += 11

    def wakes(self):
        """Arrows from the end of a phase to the lane that waited for it."""
        for warp, waits in self.facts.waits.items():
            for wait in (whole[-1] for whole in waits):
                if wait.phase is None or wait.end < self.facts.begin:
                    continue
                x, start, colour = self.at(wait.end), self.barrier_y[wait.barrier] + 5, self.colour[self.facts.stage(wait.barrier)]
                down = self.issuer_y[warp] > start
                to = self.issuer_y[warp] + (2 if down else 15)
                self.line(x, start, x, to, colour, ' stroke-width=".9" stroke-opacity=".8"')
                self.parts.append(f'<path d="M{short(x)} {short(to)}l-2.5 {-4 if down else 4}h5z" fill="{colour}"/>')

    def tensor_core(self):
        """The MMAs of each K tile, from issue to completion, one below the other where several are under way."""
        self.label("tensor core", self.y + 11)
        works = {tile: self.facts.work(tile) for tile in self.facts.tiles}
        stages = {mma.k_tile: mma.stage for mma in self.facts.mmas}
        for row in spread([tile for tile in works if works[tile]], lambda tile: works[tile][:2]):
            for tile in row:
                begin, end, count = works[tile]
                self.bar(begin, end, self.y, 13, self.colour[stages[tile]], f"{plural(count, 'MMA')} of K tile {tile}")
                self.inside(begin, end, self.y + 10.5, str(tile), 10, "#fff")
            self.y += 15
        self.y += 6

    def way_out(self):
        facts = self.facts
        for barrier in facts.accumulators + facts.others:
            self.barrier(barrier, INK)
        self.y += 9
        self.text(self.at(facts.split) + 4, self.y, "tcgen05.ld" + ("; below, TMA stores" if self.cta.of("store") else ""), 9, FAINT)
        self.y += 4
        for warp in facts.carriers:
            self.label(f"epilogue, warp {warp}", self.y + 9)
            for wait in facts.waits_out[warp]:
                self.bar(wait[0].begin, facts.end(wait[-1]), self.y, 11, WAITING, f"waits for {wait[-1].barrier}")
            for kind, fill, what, top, height in (("tmem_load", READ, "tcgen05.ld", 0, 6), ("store", STORED, "TMA store", 6, 5)):
                for span in (each for each in self.cta.of(kind) if each.warp == warp):
                    self.bar(span.begin, facts.end(span), self.y + top, height, fill, what)
            self.y += 14

    def scale(self):
        x = self.at(self.facts.split)
        self.line(x, 80, x, self.y, FAINT, ' stroke-dasharray="1 3"')
        y, last = self.y + 6, -99
        self.line(LEFT, y, WIDTH - RIGHT, y, FAINT)
        self.text(LEFT - 62, y + 15, "cycle", 9, FAINT)
        for time, x in sorted(self.axis.x.items()):
            if last + 64 <= x < WIDTH - 20:
                last = x
                self.line(x, y, x, y + 4, FAINT)
                self.text(x, y + 15, f"{time:,}", 9, FAINT, CENTRED)
        self.y = y + 24


def svg(case, cta):
    if not cta.of("load"):
        raise Refusal(f"{case.rung}: CTA {cta.rank} of cluster {cta.cluster} loads nothing, so there is nothing to draw.")
    facts = Facts(cta)
    picture = Picture(facts)
    picture.head(case)
    producers = [warp for warp in facts.issuers if "producer" in cta.role(warp)]
    for warp in producers:
        picture.issuer(warp)
    for stage in facts.stages:
        picture.stage(stage)
    for warp in facts.issuers:
        if warp not in producers:
            picture.issuer(warp)
    picture.tensor_core()
    picture.way_out()
    picture.wakes()
    picture.scale()
    return picture.svg(picture.y, f"{case.rung}, {case.shape}, schedule {case.schedule}: {VIRTUAL_TIME}")
