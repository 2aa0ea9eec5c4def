"""The figure of lesson 06: the quintic's curve, and singular values after each step. docs/figures/curves.js shows other coefficients
and another start; both find places on the same axes."""

import html

from page_data import script_json

_PLOT, _MARGIN, _HIGHEST = 360, 40, 1.3
# Each line's name, how it looks in letters, and its dashes.
_NAMES = [("σ₀", "—", "none"), ("σ₁", "– –", "8 4"), ("σ₂", "···", "2 4"), ("yours", "●", "none")]


def _x(value, widest):
    return _MARGIN + value / widest * _PLOT


def _y(value):
    return 14 + (1 - value / _HIGHEST) * 240


def _path(points):
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _start(data):
    """The place of the slider: nearest to the smallest singular value of the lesson's update."""
    smallest = data["sets"][0]["seen"][-1][0]
    paths = data["sets"][0]["paths"]
    return min(range(len(paths)), key=lambda at: abs(paths[at][0] - smallest))


def _web(path, widest):
    """From σ up to the curve, over to the line on which nothing changes, up to the curve again …"""
    points = [(_x(path[0], widest), _y(0))]
    for before, after in zip(path, path[1:]):
        points += [(_x(before, widest), _y(after)), (_x(after, widest), _y(after))]
    return _path(points)


def _axes(marks, below):
    lines = f'<path class="mwf-axis" d="M{_MARGIN} 14V{_y(0):.1f}H{_MARGIN + _PLOT}"/>'
    lines += "".join(f'<text x="{_MARGIN - 6}" y="{_y(mark) + 4:.1f}" text-anchor="end">{mark:g}</text>' for mark in (0, 0.5, 1))
    lines += "".join(f'<text x="{x:.1f}" y="272" text-anchor="middle">{words}</text>' for x, words in marks)
    return lines + f'<text x="{_MARGIN + _PLOT / 2:g}" y="292" text-anchor="middle">{below}</text>'


def _plot(name, says, content):
    return (f'<svg class="mwf-plot" data-plot="{name}" viewBox="0 0 {_MARGIN + _PLOT + 8} 300" role="img" aria-label="{says}">'
            f"{content}</svg>")


def _curve(one, path, widest):
    """The polynomial, and the way of one singular value along it."""
    last = len(one["curve"]) - 1
    points = [(_x(widest * at / last, widest), _y(value)) for at, value in enumerate(one["curve"])]
    even = _path([(_x(0, widest), _y(0)), (_x(_HIGHEST, widest), _y(_HIGHEST))])
    marks = [(_x(mark, widest), f"{mark:g}") for mark in (0, 0.5, 1)]
    return _plot("curve", "The polynomial: what a step makes of a singular value",
                 _axes(marks, "σ before a step (across), and after it (up)") + f'<path class="mwf-even" d="{even}"/>'
                 f'<clipPath id="figure-06-clip"><rect x="{_MARGIN}" y="6" width="{_PLOT + 6}" height="252"/></clipPath>'
                 f'<g clip-path="url(#figure-06-clip)"><path class="mwf-curve" d="{_path(points)}"/>'
                 f'<path class="mwf-web" d="{_web(path, widest)}"/></g>')


def _steps(one, path):
    """Singular values from step to step: those of the lesson's update, and the one that is chosen."""
    across = [_MARGIN + _PLOT * step / (len(path) - 1) for step in range(len(path))]
    half = _PLOT / (len(path) - 1) / 2

    def line(values):
        return _path(list(zip(across, map(_y, values))))

    bands = "".join(f'<g class="mwf-step" data-step="{step}"><rect x="{x - half:.1f}" y="14" width="{2 * half:.1f}" height="240"/></g>'
                    for step, x in enumerate(across))
    seen = "".join(f'<path class="mwf-curve" stroke-dasharray="{dash}" d="{line(values)}"/>' for values, (*_, dash) in zip(one["seen"], _NAMES))
    dots = "".join(f'<circle class="mwf-now" r="4" cx="{x:.1f}" cy="{_y(value):.1f}"/>' for x, value in zip(across, path))
    marks = [(x, step or "start") for step, x in enumerate(across)]
    return _plot("steps", "Singular values after each step; the table below has the numbers",
                 f'{bands}{_axes(marks, "after step")}{seen}<path class="mwf-web" d="{line(path)}"/>{dots}')


def _table(one, path):
    headings = "".join(f'<th scope="col"><button type="button" data-step="{step}">{f"step {step}" if step else "start"}</button></th>'
                       for step in range(len(path)))
    rows = "".join(f'<tr><th scope="row">{name} <span aria-hidden="true">{line}</span></th>'
                   + "".join(f'<td data-step="{step}">{value:.3f}</td>' for step, value in enumerate(values)) + "</tr>"
                   for (name, line, _), values in zip(_NAMES, [*one["seen"], path]))
    return ('<div class="mwf-table" tabindex="0" role="region" aria-label="Singular values after each step"><table><thead><tr><td></td>'
            f"{headings}</tr></thead><tbody>{rows}</tbody></table></div>")


def _controls(data, path, start):
    options = "".join(f"<option>{html.escape(each['name'], quote=False)}</option>" for each in data["sets"])
    last = len(data["sets"][0]["paths"]) - 1
    return ('<div class="mwf-controls"><label for="figure-06-set"><span>coefficients</span>'
            f'<select id="figure-06-set">{options}</select></label><label for="figure-06-start"><span>your σ at the start: '
            f'<output id="figure-06-now" for="figure-06-start">{path[0]:.3f}</output></span><input type="range" id="figure-06-start" '
            f'min="0" max="{last}" value="{last - start}" step="1" aria-valuetext="{path[0]:.3f}"/></label></div>')


def singular_values(data):
    """The figure as it begins: Muon's coefficients in float32."""
    one, start = data["sets"][0], _start(data)
    path = one["paths"][start]
    return ('<figure class="mw-figure mwf-curves" id="figure-06" data-figure="figure-06-data"><figcaption>What five steps make of a '
            "singular value</figcaption><p>On the left, a step goes from σ straight up to the curve, and over to the dashed line, where σ "
            "stands for the next step. On the right are the three singular values of this lesson’s update, as the iteration has them, and "
            "the one that you choose. Point at a step to see how far the way has gone by then.</p>"
            f'{_controls(data, path, start)}<p class="mwf-formula">φ(σ) = <span>{html.escape(one["formula"], quote=False)}</span></p>'
            f'<div class="mwf-plots">{_curve(one, path, data["widest"])}{_steps(one, path)}</div>{_table(one, path)}</figure>'
            + script_json("figure-06-data", data) + '<script src="curves.js"></script>')
