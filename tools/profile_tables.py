"""Tables of counters for the pages: what `ladder profile` recorded, and what each counter means."""

from tools import build, profile
from tools.page_blocks import table
from tools.terminal import Refusal


def profiled(asked):
    """A rung: its counters beside those of the rung before, the origin's on its B200 and the committed ones of each chip."""
    rung, rungs = build.named(asked), build.sources()
    pair = rungs[max(0, rungs.index(rung) - 1):rungs.index(rung) + 1]
    columns = {f"*origin*, B200: {each}": profile.origin(each) for each in pair if profile.origin(each)}
    chips = profile.committed(rung)
    for chip in chips or ["h200"]:
        for each in pair:
            known = profile.committed(each).get(chip)
            if not known:
                raise Refusal(f"<!-- profile: {asked} -->: no counters of {each} are in bench/profiles/{chip}. On such a GPU: "
                              f"./ladder profile {each.split('_')[0]} --record")
            columns[f"*measured*, {chip.upper()}: {each}"] = known
    rows = [("", *columns), ("---", *["---:"] * len(columns))]
    for metric, cells in profile.rows(list(columns.values())):
        if set(cells) != {"-"}:
            rows.append((profile.named_with_unit(metric).strip(), *cells))
    return table(rows)


def metrics(asked):
    """All that `ladder profile` counts."""
    if asked != "all":
        raise Refusal(f"<!-- metrics: {asked} -->: expected all.")
    return table([("what", "unit", "Nsight Compute's name", "what it means"), ("---", "---", "---", "---")] + [
        (each.name.strip(), each.unit, ", or ".join(f"`{counter}`" for counter in each.counters), each.meaning) for each in profile.ALL])
