//! The picture of a load: how long tokens were waited for, and the queue over time.

use super::drive::{LatencyLimits, LoadSample};
use crate::stats::sorted;
use std::fmt::Write;

const FIRST: &str = "#4878a8";
const BETWEEN: &str = "#d1615d";
const WAITING: &str = "#e49444";
const GRID: &str = "#ddd";

/// A field that curves are drawn in, in pixels, and the values at its sides.
struct PlotArea {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Values at the left and the right side.
    from: f64,
    to: f64,
    /// Value at the top; 0 is at the bottom.
    most: f64,
    /// Whether equal factors have equal widths.
    is_log: bool,
}

impl PlotArea {
    fn x(&self, value: f64) -> f64 {
        let part = match self.is_log {
            true => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        self.left + self.width * part
    }

    fn y(&self, value: f64) -> f64 {
        self.top + self.height * (1.0 - value / self.most)
    }

    /// A line across, with its value at the left.
    fn across(&self, svg: &mut Svg, value: f64, label: &str) {
        svg.line([self.left, self.y(value)], [self.left + self.width, self.y(value)], GRID, "");
        svg.text([self.left - 6.0, self.y(value) + 4.0], "end", label);
    }

    /// A line from top to bottom, with its value below.
    fn down(&self, svg: &mut Svg, value: f64, label: &str) {
        svg.line([self.x(value), self.top], [self.x(value), self.top + self.height], GRID, "");
        svg.text([self.x(value), self.top + self.height + 16.0], "middle", label);
    }
}

/// The elements so far.
struct Svg(String);

impl Svg {
    fn line(&mut self, from: [f64; 2], to: [f64; 2], colour: &str, more: &str) {
        let ([x1, y1], [x2, y2]) = (from, to);
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"{more}/>"
        );
    }

    fn text(&mut self, at: [f64; 2], anchor: &str, text: &str) {
        let [x, y] = at;
        let text = escaped(text);
        let _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    fn curve(&mut self, points: impl Iterator<Item = [f64; 2]>, colour: &str) {
        let points: Vec<String> = points.map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        let _ = writeln!(
            self.0,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
    }

    /// Names of curves, one beside the other, from `at`.
    fn legend(&mut self, at: [f64; 2], names: &[(&str, &str)]) {
        let [mut x, y] = at;
        for (name, colour) in names {
            self.line([x, y - 4.0], [x + 20.0, y - 4.0], colour, " stroke-width=\"3\"");
            self.text([x + 26.0, y], "start", name);
            x += 180.0;
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Points of a curve at most.
const POINTS: usize = 400;

/// The picture as an SVG file: above, which part of the tokens came within how many seconds; below, requests
/// that ran and that waited.
pub(super) fn picture(
    title: &str,
    first: &[f64],
    between: &[f64],
    limits: LatencyLimits,
    timeline: &[LoadSample],
) -> String {
    let mut svg = Svg(String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 600\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"900\" height=\"600\" fill=\"white\"/>\n",
    ));
    svg.text([60.0, 22.0], "start", title);
    waits(&mut svg, &sorted(first), &sorted(between), limits);
    queue(&mut svg, timeline);
    svg.0 + "</svg>\n"
}

/// Curves of the waits, rising from none to all.
fn waits(svg: &mut Svg, first: &[f64], between: &[f64], limits: LatencyLimits) {
    let all = || first.iter().chain(between).copied().filter(|seconds| *seconds > 0.0);
    let decade = |value: f64| value.max(1e-6).log10();
    let from = decade(all().fold(1.0, f64::min)).floor();
    let to = decade(all().fold(1e-3, f64::max)).ceil().max(from + 1.0);
    let (left, top, width, height) = (60.0, 60.0, 820.0, 220.0);
    let field = PlotArea {
        left,
        top,
        width,
        height,
        from: 10f64.powf(from),
        to: 10f64.powf(to),
        most: 1.0,
        is_log: true,
    };
    for percent in [0, 25, 50, 75, 90, 100] {
        field.across(svg, f64::from(percent) / 100.0, &format!("{percent} %"));
    }
    for exponent in from as i32..=to as i32 {
        let label = match exponent {
            0.. => format!("{} s", 10i64.pow(exponent as u32)),
            -3..=-1 => format!("{} ms", 10i64.pow((exponent + 3) as u32)),
            _ => format!("{} us", 10i64.pow((exponent + 6).max(0) as u32)),
        };
        field.down(svg, 10f64.powi(exponent), &label);
    }
    for (limit, colour) in [(limits.first, FIRST), (limits.pace, BETWEEN)] {
        if limit > field.from && limit < field.to {
            let x = field.x(limit);
            svg.line([x, top], [x, top + height], colour, " stroke-dasharray=\"4 3\"");
        }
    }
    for (sorted, colour) in [(first, FIRST), (between, BETWEEN)] {
        let count = sorted.len().min(POINTS);
        let point = |n: usize| {
            let part = if count > 1 { n as f64 / (count - 1) as f64 } else { 1.0 };
            let seconds = sorted[(part * (sorted.len() - 1) as f64).round() as usize];
            [field.x(seconds), field.y(part)]
        };
        svg.curve((0..count).map(point), colour);
    }
    svg.legend(
        [60.0, 46.0],
        &[("to the first token", FIRST), ("between tokens", BETWEEN), ("limits: dashed", GRID)],
    );
}

/// Steps of the queue.
fn queue(svg: &mut Svg, timeline: &[LoadSample]) {
    let end = timeline.last().map_or(1.0, |last| last.at).max(1e-3);
    let most = timeline.iter().map(|sample| sample.running.max(sample.waiting)).max().unwrap_or(0).max(1);
    let (left, top, width, height) = (60.0, 350.0, 820.0, 210.0);
    let field =
        PlotArea { left, top, width, height, from: 0.0, to: end, most: f64::from(most), is_log: false };
    for quarter in 0..=4 {
        let value = f64::from(most) * f64::from(quarter) / 4.0;
        if value.fract() == 0.0 {
            field.across(svg, value, &value.to_string());
        }
        let at = end * f64::from(quarter) / 4.0;
        field.down(svg, at, &format!("{at:.1} s"));
    }
    // The most of a stretch of time, so that nothing short is lost.
    let stretch = timeline.len().div_ceil(POINTS).max(1);
    let mut steps = |of: &dyn Fn(&LoadSample) -> u32, colour| {
        let mut points = Vec::new();
        let mut before = None;
        for part in timeline.chunks(stretch) {
            let y = field.y(f64::from(part.iter().map(of).max().unwrap_or(0)));
            let x = field.x(part[0].at);
            points.extend(before.map(|before| [x, before]));
            points.push([x, y]);
            before = Some(y);
        }
        points.extend(before.map(|before| [left + width, before]));
        svg.curve(points.into_iter(), colour);
    };
    steps(&|sample| sample.waiting, WAITING);
    steps(&|sample| sample.running, FIRST);
    svg.legend([60.0, 336.0], &[("requests that run", FIRST), ("requests that wait", WAITING)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(svg: &str) -> Vec<Vec<[f64; 2]>> {
        let curves = svg.split("<polyline points=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let point = |pair: &str| {
            let (x, y) = pair.split_once(',').unwrap();
            [x.parse().unwrap(), y.parse().unwrap()]
        };
        curves.map(|curve| curve.split(' ').filter(|pair| !pair.is_empty()).map(point).collect()).collect()
    }

    #[test]
    fn curves_go_through_what_was_measured() {
        let limits = LatencyLimits { first: 0.5, pace: 0.05 };
        let timeline: Vec<LoadSample> =
            (0..=100).map(|n| LoadSample { at: f64::from(n) / 10.0, running: 4, waiting: n / 10 }).collect();
        let svg = picture("a & b", &[0.1, 0.3, 1.0], &[0.01; 900], limits, &timeline);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("a &amp; b"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        let curves = points(&svg);
        let [first, between, waiting, running] = &curves[..] else { panic!("{} curves", curves.len()) };
        // Two decades, from 10 ms to 1 s, over 820 pixels.
        assert_eq!(first[..], [[470.0, 280.0], [665.6, 170.0], [880.0, 60.0]]);
        assert!(between.len() == POINTS && between.iter().all(|point| point[0] == 60.0));
        // Ten wait at the end: the top.
        assert_eq!(waiting[waiting.len() - 1], [880.0, 350.0]);
        assert!(running.iter().all(|point| (point[1] - 476.0).abs() < 0.1), "4 of 10 at 476");
    }

    #[test]
    fn nothing_measured_is_drawn_as_well() {
        let svg = picture("", &[], &[], LatencyLimits { first: 1.0, pace: 1.0 }, &[]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let one = picture(
            "",
            &[0.0],
            &[],
            LatencyLimits { first: 1.0, pace: 1.0 },
            &[LoadSample { at: 0.0, running: 0, waiting: 0 }],
        );
        assert!(!one.contains("NaN") && !one.contains("inf"), "{one}");
    }
}
