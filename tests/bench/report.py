"""Results as Markdown and as an SVG chart."""
import html
import statistics

import cells

LABELS = {"claimq": "claimq", "claimq-ndjson": "claimq, NDJSON", "before": "claimq before", "before-ndjson": "claimq before, NDJSON",
          "pika": "pika", "pika-threads": "pika, threads",
          "pika-pipelined": "pika, pipelined", "go": "Go", "go-tuned": "Go, tuned", "go-ndjson": "Go, NDJSON", "node": "Node",
          "ceiling": "broker's ceiling", "amqp-publish": "amqp-publish", "handshake": "bare handshake"}


def of(results, cell, contender):
    return [run for run in results["runs"] if run["cell"] == cell and run["contender"] == contender]


def values(results, cell, contender, figure):
    return [run[figure] for run in of(results, cell, contender) if figure in run]


def median(results, cell, contender, figure):
    found = values(results, cell, contender, figure)
    return statistics.median(found) if found else None


def ratios(results, cell, figure, ours, other):
    """Round by round, so that what slows the machine for a while slows both."""
    others = {run["round"]: run[figure] for run in of(results, cell, other) if figure in run}
    return [run[figure] / others[run["round"]] for run in of(results, cell, ours)
            if figure in run and others.get(run["round"])]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(found):
    if not found:
        return "–"
    middle = number(statistics.median(found))
    return middle if len(found) == 1 else f"{middle} ({number(min(found))}–{number(max(found))})"


def cell_table(results, cell):
    one_shot = isinstance(cell, cells.OneShot)
    figure = "wall_ms" if one_shot else "rate"
    names = [name for name in cells.counts(cell) if of(results, cell.name, name)]
    if not names:
        return []
    per = "run" if one_shot else "claim"
    lines = [f"### {cell.title}", "",
             f"| | {'ms' if one_shot else 'claims/s'} | claimq : it | CPU µs/{per} | peak MiB | system calls/{per} | "
             f"broker CPU µs/{per} |",
             "|---|---|---|---|---|---|---|"]
    for name in names:
        pairs = ratios(results, cell.name, figure, "claimq", name)
        calls = results["calls"].get(cell.name, {}).get(name)
        lines.append(f"| {LABELS[name]} | {spread(values(results, cell.name, name, figure))} "
                     f"| {spread(pairs) if name != 'claimq' else '1'} "
                     f"| {number(median(results, cell.name, name, 'cpu_us'))} "
                     f"| {number(median(results, cell.name, name, 'rss_mib'))} "
                     f"| {number(calls) if calls is not None else '–'} "
                     f"| {'–' if one_shot else number(median(results, cell.name, name, 'broker_cpu_us'))} |")
    return lines + [""]


def goal(results, text, cell, figure, ours, other, sense, bound):
    if isinstance(other, str):
        found = ratios(results, cell, figure, ours, other)
    else:
        found = [value / (other or 1) for value in values(results, cell, ours, figure)]
    if not found:
        return None
    value = statistics.median(found)
    met = value >= bound if sense == "≥" else value <= bound
    return f"| {text} | {sense} {bound} | {spread(found)} | {'met' if met else 'missed'} |"


def markdown(results):
    about = results["machine"]
    lines = [f"{about['processors']} processors ({about['model']}), Linux {about['kernel']}, RabbitMQ {about['rabbitmq']} "
             f"({results['queue_type']} queues), nginx {about['nginx']}, all on one machine; {results['rounds']} "
             "alternating rounds, medians (lowest–highest); ratios are medians of each round's ratio. "
             f"Other work on the machine meanwhile: {foreign(results)} processors"
             f"{', which all of this ran ahead of (--realtime)' if results['realtime'] else ''}. "
             "claimq's rate counts its start and its end, the others' runs from the first delivery to the last ack.", ""]
    if results["quick"]:
        lines += ["**--quick: these times mean nothing.**", ""]
    if results["missing"]:
        lines += ["Left out: " + "; ".join(f"{name}, needs {needs}" for name, needs in results["missing"].items()), ""]
    if not results["quick"]:
        goals = [row for row in (goal(results, *one) for one in cells.GOALS) if row]
        if goals:
            lines += ["| claimq against | goal | measured | |", "|---|---|---|---|", *goals, ""]
    for cell in cells.CELLS:
        lines += cell_table(results, cell)
    for failure in results["failures"]:
        lines.append(f"**Wrong, not counted:** {failure}")
    return "\n".join(lines).rstrip() + "\n"


def foreign(results):
    found = [run["foreign_cpus"] for run in results["runs"] if run["wall"] > 0.5]  # the kernel counts in 10 ms
    return f"{statistics.median(found):.2f} (at most {max(found):.2f})" if found else "unknown"


# ---- the chart

PANELS = (("prefetch-5", "rate", "claims/s, prefetch 5"), ("prefetch-50", "rate", "claims/s, prefetch 50"),
          ("prefetch-50", "cpu_us", "CPU µs per claim, prefetch 50 (less is better)"),
          ("publish-many", "rate", "published claims/s, many"),
          ("publish-one", "wall_ms", "ms to publish one file (less is better)"))
WIDTH, LABEL, BAR, GAP = 720, 130, 18, 4
COLOURS = {"claimq": "#1f77b4", "ceiling": "#999999", "handshake": "#999999"}


def chart(results):
    y, parts = 8, []
    for cell, figure, title in PANELS:
        bars = [(name, median(results, cell, name, figure)) for name in LABELS
                if not (figure == "cpu_us" and name == "ceiling")]
        bars = [(name, value) for name, value in bars if value is not None]
        if not bars:
            continue
        most = max(value for _, value in bars)
        parts.append(f'<text x="{LABEL}" y="{y + 14}" font-weight="bold">{html.escape(title)}</text>')
        y += 22
        for name, value in bars:
            length = max(1, (WIDTH - LABEL - 70) * value / most)
            colour = COLOURS.get(name.removesuffix("-ndjson"), "#c8a165")
            parts.append(f'<text x="{LABEL - 6}" y="{y + 13}" text-anchor="end">{html.escape(LABELS[name])}</text>'
                         f'<rect x="{LABEL}" y="{y}" width="{length:.0f}" height="{BAR}" fill="{colour}"/>'
                         f'<text x="{LABEL + length + 5:.0f}" y="{y + 13}">{number(value)}</text>')
            y += BAR + GAP
        y += 14
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            'font-family="sans-serif" font-size="12" fill="#222">\n'
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
