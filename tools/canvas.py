"""A sheet to draw on, which becomes an SVG file."""

from html import escape

WIDTH = 900
PAPER, INK, FAINT = "#fcfcfa", "#222", "#777"
FONT = "font-family=\"system-ui,'Helvetica Neue',Helvetica,Arial,sans-serif\""


def short(number):
    return f"{number:.1f}".removesuffix(".0")


class Canvas:
    def __init__(self):
        self.parts = []

    def rect(self, x, y, width, height, fill, tip="", extra=""):
        body = f"><title>{escape(tip)}</title></rect>" if tip else "/>"
        self.parts.append(f'<rect x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}" '
                          f'fill="{fill}"{extra}{body}')

    def line(self, x1, y1, x2, y2, colour, extra=""):
        self.parts.append(f'<path d="M{short(x1)} {short(y1)}L{short(x2)} {short(y2)}" stroke="{colour}"{extra}/>')

    def circle(self, x, y, radius, fill, extra="", tip=""):
        body = f"><title>{escape(tip)}</title></circle>" if tip else "/>"
        self.parts.append(f'<circle cx="{short(x)}" cy="{short(y)}" r="{short(radius)}" fill="{fill}"{extra}{body}')

    def text(self, x, y, text, size=11, fill=INK, extra="", tip=""):
        tip = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(f'<text x="{short(x)}" y="{short(y)}" font-size="{size}" fill="{fill}"{extra}>{escape(text)}{tip}</text>')

    def svg(self, height, title):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {short(height)}" width="{WIDTH}" '
                f'height="{short(height)}" {FONT} role="img"><title>{escape(title)}</title>')
        # Paper of its own: the page around it may be dark.
        paper = f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{short(height - 1)}" rx="6" fill="{PAPER}" stroke="#bbb"/>'
        return "\n".join([head, paper, *self.parts, "</svg>", ""])
