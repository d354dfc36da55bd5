//! Draws plots as SVG text.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

const SIZE: (u32, u32) = (900, 420);
const COLOURS: [RGBColor; 5] = [
    RGBColor(0xb3, 0x26, 0x1e),
    RGBColor(0x18, 0x7a, 0x2f),
    RGBColor(0x1f, 0x5f, 0xb4),
    RGBColor(0x8a, 0x5a, 0x00),
    RGBColor(0x66, 0x66, 0x66),
];

/// One line of a plot; points with a y of zero or less cannot be drawn and are left out.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub dashed: bool,
}

/// A point above which a named triangle stands.
pub struct Mark {
    pub name: String,
    pub at: (f64, f64),
}

/// Lines over a linear x axis, with a logarithmic y axis.
pub fn lines(x: &str, y: &str, lines: &[Line]) -> Result<String> {
    marked(x, y, lines, &[])
}

/// Lines and marks. Marks stand above all lines, and a single line has no legend, which could hide
/// one.
pub fn marked(x: &str, y: &str, lines: &[Line], marks: &[Mark]) -> Result<String> {
    let mut svg = String::new();
    draw(&mut svg, x, y, lines, marks).map_err(|error| anyhow!("drawing a plot: {error}"))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    x: &str,
    y: &str,
    lines: &[Line],
    marks: &[Mark],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|line| &line.points).filter(|point| point.1 > 0.0);
    let range = |axis: fn(&(f64, f64)) -> f64| {
        let (low, high) = points()
            .map(axis)
            .fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low < high { (low, high) } else { (0.5, 1.0) }
    };
    let ((left, right), (bottom, top)) = (range(|point| point.0), range(|point| point.1));
    let head = if marks.is_empty() { 1.25 } else { 4.0 };
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(left..right, (bottom * 0.8..top * head).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .light_line_style(RGBColor(0xee, 0xee, 0xee))
        .draw()?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let visible: Vec<_> = line.points.iter().copied().filter(|point| point.1 > 0.0).collect();
        let (style, colour) = (colour.stroke_width(2), *colour);
        let drawn = if line.dashed {
            chart.draw_series(DashedLineSeries::new(visible, 6, 4, style))?
        } else {
            chart.draw_series(LineSeries::new(visible, style))?
        };
        drawn
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    for Mark { name, at: (x, y) } in marks {
        chart.draw_series([(*x, y * 1.5)].map(|above| {
            EmptyElement::at(above)
                + TriangleMarker::new((0, 0), 6, COLOURS[1].filled())
                + Text::new(name.clone(), (8, -14), ("sans-serif", 15))
        }))?;
    }
    if lines.len() < 2 {
        return Ok(area.present()?);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(0xcc, 0xcc, 0xcc))
        .draw()?;
    area.present()?;
    Ok(())
}

/// A bar for each name, on a linear axis from zero.
pub fn bars(y: &str, bars: &[(String, f64)]) -> Result<String> {
    let mut svg = String::new();
    draw_bars(&mut svg, y, bars).map_err(|error| anyhow!("drawing a plot: {error}"))?;
    Ok(svg)
}

fn draw_bars(
    svg: &mut String,
    y: &str,
    bars: &[(String, f64)],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let highest = bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
    let top = if highest > 0.0 { highest * 1.1 } else { 1.0 };
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..bars.len() as f64 - 0.5, 0.0..top)?;
    // A label under the middle of each bar, and none between.
    let name = |x: &f64| {
        let whole = (x - x.round()).abs() < 1e-6;
        let bar = (whole && *x >= 0.0).then(|| bars.get(x.round() as usize)).flatten();
        bar.map_or_else(String::new, |bar| bar.0.clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(bars.len() * 2)
        .x_label_formatter(&name)
        .y_desc(y)
        .light_line_style(RGBColor(0xee, 0xee, 0xee))
        .draw()?;
    chart.draw_series(bars.iter().enumerate().map(|(index, (_, height))| {
        let middle = index as f64;
        Rectangle::new([(middle - 0.35, 0.0), (middle + 0.35, *height)], COLOURS[2].filled())
    }))?;
    area.present()?;
    Ok(())
}

/// A row of lettered boxes for each label; equal letters have equal colours.
pub fn sequences(rows: &[(String, String)]) -> String {
    const BOX: usize = 34;
    const LABELS: usize = 210;
    let longest = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let (width, height) = (LABELS + longest * BOX, rows.len() * BOX);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"15\">"
    );
    for (row, (label, letters)) in rows.iter().enumerate() {
        let y = row * BOX;
        svg += &format!("<text x=\"0\" y=\"{}\">{label}</text>", y + 22);
        for (column, letter) in letters.chars().enumerate() {
            let RGBColor(r, g, b) = COLOURS[letter as usize % COLOURS.len()];
            let x = LABELS + column * BOX;
            svg += &format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"32\" height=\"30\" fill=\"rgb({r},{g},{b})\"/>\
                 <text x=\"{}\" y=\"{}\" fill=\"white\">{letter}</text>",
                x + 11,
                y + 21
            );
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_every_line_and_survives_none() {
        let line = |name: &str, dashed| Line {
            name: name.to_owned(),
            points: vec![(0.0, 1.0), (1.0, 100.0)],
            dashed,
        };
        let svg = lines("share", "ms", &[line("first", false), line("second", true)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("first") && svg.contains("second"));
        assert!(lines("x", "y", &[]).is_ok());
        let nothing = Line { name: "zeroes".to_owned(), points: vec![(0.0, 0.0)], dashed: false };
        assert!(lines("x", "y", &[nothing]).is_ok());
    }

    /// Its triangle is the one polygon of the picture, its label the text.
    #[test]
    fn a_mark_stands_above_the_peak_and_no_legend_hides_it() {
        let line = Line {
            name: "spectrum".to_owned(),
            points: vec![(10.0, 1.0), (40.0, 100.0), (90.0, 1.0)],
            dashed: false,
        };
        let mark = Mark { name: "40 Hz".to_owned(), at: (40.0, 100.0) };
        let svg = marked("Hz", "amplitude", &[line], &[mark]).unwrap();
        let heights = |tag: &str| -> Vec<f64> {
            let element = svg.split(tag).nth(1).unwrap().split("points=\"").nth(1).unwrap();
            let points = element.split('"').next().unwrap().split_whitespace();
            points.map(|point| point.split(',').nth(1).unwrap().parse().unwrap()).collect()
        };
        let lowest_of_mark = heights("<polygon").into_iter().fold(0.0, f64::max);
        let peaks = svg.split("<polyline").skip(1).flat_map(|element| {
            let points = element.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            points.split_whitespace().map(|point| point.to_owned()).collect::<Vec<_>>()
        });
        assert!(peaks.count() > 0 && lowest_of_mark < 120.0, "{svg}");
        assert!(svg.contains("40 Hz") && !svg.contains("spectrum"), "{svg}");
    }

    #[test]
    fn a_sequence_is_a_box_for_each_letter() {
        let svg = sequences(&[("fifo".to_owned(), "ABA".to_owned())]);
        assert!(svg.matches("<rect").count() == 3 && svg.contains(">fifo<"), "{svg}");
    }
}
