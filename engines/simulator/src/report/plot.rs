//! Drawings as SVG inside the page: bars, and curves of percentiles. Lengths are pixels of the drawing.
//!
//! Colours are classes of the page's style sheet, so that a drawing follows the reader's light or dark theme.

use std::fmt::Write;

use super::duration;
use crate::metrics::Summary;
use crate::policy::Time;

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

pub fn bars(bars: &[Bar]) -> String {
    const ROW: usize = 22;
    const LABEL: usize = 150;
    const WIDTH: usize = 520;
    let height = bars.len() * ROW + 4;
    let longest = bars.iter().map(|bar| bar.share).fold(1e-9, f64::max);
    let mut svg = format!("<svg viewBox=\"0 0 {} {height}\" role=\"img\">", LABEL + WIDTH + 90);
    for (row, bar) in bars.iter().enumerate() {
        let y = row * ROW + 2;
        let width = (bar.share / longest * WIDTH as f64).max(1.0);
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" class=\"end\">{}</text><rect x=\"{LABEL}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{}\" rx=\"2\" class=\"c{}\"/><text x=\"{:.1}\" y=\"{}\" class=\"dim\">{}</text>",
            LABEL - 8,
            y + 14,
            escaped(&shortened(&bar.label, 22)),
            ROW - 5,
            bar.colour % COLOURS,
            LABEL as f64 + width + 6.0,
            y + 14,
            escaped(&bar.text)
        );
    }
    svg + "</svg>"
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Percentiles to the right, on a scale on which each nine takes the same room; durations upwards, logarithmic.
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
    let mut svg =
        format!("<svg viewBox=\"0 0 {} {}\" role=\"img\">", LEFT + WIDTH + 40.0, TOP + HEIGHT + 34.0);
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
    for (nines, label) in
        [(0.0, "0 %"), (0.301, "50 %"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"), (4.0, "99.99 %")]
    {
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
            "<polyline points=\"{}\" class=\"line s{}\"><title>{}: p50 {}, p99 {}, max {}</title></polyline>",
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
    format!("{} {}", 10u64.pow((power - 3 * thousands) as u32), ["ns", "us", "ms", "s"][thousands as usize])
}

pub fn legend<'a>(entries: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut html = String::from("<p class=\"legend\">");
    for (name, colour) in entries {
        let _ = write!(html, "<span><i class=\"b{}\"></i>{}</span>", colour % COLOURS, escaped(name));
    }
    html + "</p>"
}
