//! Draws SVG inside the page: bars, and curves of percentiles. Lengths are pixels of the drawing.
//!
//! Colours are classes of the page's style sheet, so that a drawing follows the reader's light or
//! dark theme.

use std::fmt::Write;

use crate::duration::duration;
use crate::metrics::Summary;
use crate::scheduler::Time;

/// Colours in the style sheet: `c0` to `c7`.
pub const COLOURS: usize = 8;

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub struct Bar {
    pub label: String,
    /// 0 to 1.
    pub share: f64,
    pub text: String,
    pub colour: usize,
}

/// Room for a character of the page's text: wider than all but the widest letters.
const CHARACTER: f64 = 8.0;
/// Longer labels are cut, and the whole one is a tooltip.
const LONGEST_LABEL: usize = 28;

/// Room for a column of labels.
pub fn label_room<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    longest.min(LONGEST_LABEL) as f64 * CHARACTER + 8.0
}

/// A label that ends at `right`.
pub fn label(right: f64, baseline: f64, text: &str) -> String {
    let shown = if text.chars().count() <= LONGEST_LABEL {
        escaped(text)
    } else {
        let cut: String = text.chars().take(LONGEST_LABEL - 1).chain(['…']).collect();
        format!("{}<title>{}</title>", escaped(&cut), escaped(text))
    };
    format!("<text x=\"{right:.0}\" y=\"{baseline:.0}\" class=\"end\">{shown}</text>")
}

pub fn bars(bars: &[Bar]) -> String {
    const ROW: f64 = 22.0;
    const WIDTH: f64 = 520.0;
    let left = label_room(bars.iter().map(|bar| bar.label.as_str()));
    let right = label_room(bars.iter().map(|bar| bar.text.as_str()));
    let height = bars.len() as f64 * ROW + 4.0;
    let longest = bars.iter().map(|bar| bar.share).fold(1e-9, f64::max);
    let mut svg =
        format!("<svg viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\">", left + WIDTH + right);
    for (row, bar) in bars.iter().enumerate() {
        let y = row as f64 * ROW + 2.0;
        let width = (bar.share / longest * WIDTH).max(1.0);
        svg += &label(left - 8.0, y + 14.0, &bar.label);
        let _ = write!(
            svg,
            "<rect x=\"{left:.0}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{:.0}\" \
             rx=\"2\" class=\"c{}\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\" class=\"dim\">{}</text>",
            ROW - 5.0,
            bar.colour % COLOURS,
            left + width + 6.0,
            y + 14.0,
            escaped(&bar.text)
        );
    }
    svg + "</svg>"
}

/// Percentiles to the right, on a scale on which each nine takes the same room; durations upwards,
/// logarithmic.
pub fn percentiles(curves: &[(String, usize, &Summary)]) -> String {
    const LEFT: f64 = 70.0;
    const TOP: f64 = 10.0;
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 260.0;
    /// Nines to the right end: 99.99 %.
    const NINES: f64 = 4.0;
    let highest = curves.iter().map(|(_, _, summary)| summary.max()).max().unwrap_or(0).max(1_000);
    let (low, high) = (2.0, (highest as f64).log10().ceil().max(3.0));
    let x = |nines: f64| LEFT + nines / NINES * WIDTH;
    let y = |time: Time| {
        let log = (time.max(1) as f64).log10().clamp(low, high);
        TOP + HEIGHT - (log - low) / (high - low) * HEIGHT
    };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\">",
        LEFT + WIDTH + 40.0,
        TOP + HEIGHT + 34.0
    );
    for power in low as i32..=high as i32 {
        let time = 10f64.powi(power) as Time;
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{2:.1}\" y2=\"{2:.1}\" class=\"grid\"/>\
             <text x=\"{1}\" y=\"{3:.1}\" class=\"end dim\">{4}</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            y(time),
            y(time) + 4.0,
            power_of_ten(power)
        );
    }
    for (nines, label) in [
        (0.0, "0 %"),
        (0.301, "50 %"),
        (1.0, "90 %"),
        (2.0, "99 %"),
        (3.0, "99.9 %"),
        (4.0, "99.99 %"),
    ] {
        let _ = write!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{1}\" class=\"grid\"/>\
             <text x=\"{0:.1}\" y=\"{2}\" class=\"middle dim\">{label}</text>",
            x(nines),
            TOP + HEIGHT,
            TOP + HEIGHT + 18.0
        );
    }
    for (name, colour, summary) in curves {
        let mut points = String::new();
        for step in 0..=160 {
            let nines = f64::from(step) / 160.0 * NINES;
            let value = summary.quantile(1.0 - 10f64.powf(-nines));
            let _ = write!(points, "{:.1},{:.1} ", x(nines), y(value));
        }
        let _ = write!(
            svg,
            "<polyline points=\"{}\" class=\"line s{}\"><title>{}: p50 {}, p99 {}, max \
                {}</title></polyline>",
            points.trim_end(),
            colour % COLOURS,
            escaped(name),
            duration(summary.quantile(0.5)),
            duration(summary.quantile(0.99)),
            duration(summary.max())
        );
    }
    svg + "</svg>" + &legend(curves.iter().map(|(name, colour, _)| (name.as_str(), *colour)))
}

fn power_of_ten(power: i32) -> String {
    let thousands = (power / 3).min(3);
    format!(
        "{} {}",
        10u64.pow((power - 3 * thousands) as u32),
        ["ns", "us", "ms", "s"][thousands as usize]
    )
}

pub fn legend<'a>(entries: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut html = String::from("<p class=\"legend\">");
    for (name, colour) in entries {
        let _ =
            write!(html, "<span><i class=\"b{}\"></i>{}</span>", colour % COLOURS, escaped(name));
    }
    html + "</p>"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of an attribute, one per occurrence.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        svg.split(start.as_str())
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect()
    }

    #[test]
    fn labels_of_bars_lie_inside_the_drawing() {
        let bar = |label: &str, share| Bar {
            label: label.into(),
            share,
            text: "100.0 %, 999 ms".into(),
            colour: 0,
        };
        for name in ["a", "a_long_name_of_threads", &"W".repeat(80)] {
            let svg = bars(&[bar(name, 1.0), bar("b", 0.1)]);
            let width: f64 = svg.split(' ').nth(3).unwrap().parse().unwrap();
            let shown = name.chars().count().min(LONGEST_LABEL) as f64;
            let x = numbers(&svg, "x");
            assert!(x[0] >= shown * CHARACTER, "{svg}");
            // The text behind the longest bar.
            assert!(x[2] + 15.0 * CHARACTER <= width, "{svg}");
        }
    }
}
