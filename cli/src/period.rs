//! `attune period`: the periods of a recorded program.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use attune_lab::plot::{Line, Mark, marked};
use attune_rhythm::analyser::{self, Analysis, Period};
use attune_rhythm::recording::{self, Event};
use attune_rhythm::{Method, Settings, spectrum_2010, windows};
use serde::Serialize;

use crate::args::{PeriodArgs, PeriodMethod};
use crate::failure::Failure;
use crate::output;

/// Windows that are analysed of one recording, at most: more are a mistake in the recording or in
/// the command.
const MOST_WINDOWS: f64 = 1e6;

#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    start_s: Option<f64>,
    #[serde(flatten)]
    analysis: Analysis,
    analysis_ms: f64,
}

pub fn run(args: &PeriodArgs) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    let bytes =
        std::fs::read(&args.file).map_err(|error| Failure::file("read", &args.file, error))?;
    let recording = recording::parse(&bytes)
        .map_err(|error| Failure::usage(format!("{}: {error}", args.file.display())))?;
    if recording.lost > 0 {
        eprintln!(
            "attune: {} lacks {} events that the tracer lost; the verdict is on what is there",
            args.file.display(),
            recording.lost
        );
    }
    let events = recording.events;
    match args.window {
        None => {
            let begin = Instant::now();
            let analysis = windows::whole(&events, &settings);
            print(args, Answer { start_s: None, analysis, analysis_ms: milliseconds(begin) })?;
        }
        Some(window) => {
            check_window(window, &events, &args.file)?;
            let mut answers = windows::consecutive(&events, window, &settings);
            loop {
                let begin = Instant::now();
                let Some((start, analysis)) = answers.next() else { break };
                print(
                    args,
                    Answer { start_s: Some(start), analysis, analysis_ms: milliseconds(begin) },
                )?;
            }
        }
    }
    if let Some(path) = &args.plot {
        output::write(path, plot(&events, &settings)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &PeriodArgs) -> Result<Settings, Failure> {
    let published = spectrum_2010::Parameters::default();
    let parameters = spectrum_2010::Parameters {
        f_min: args.f_min.unwrap_or(published.f_min),
        f_max: args.f_max.unwrap_or(published.f_max),
        df: args.df.unwrap_or(published.df),
        alpha: args.alpha.unwrap_or(published.alpha),
        eps: args.eps.unwrap_or(published.eps),
        harmonics: args.harmonics.unwrap_or(published.harmonics),
    };
    let ours = Settings::default();
    let settings = Settings {
        method: match args.method {
            PeriodMethod::Evidence => Method::Evidence,
            PeriodMethod::Spectrum2010 => Method::Spectrum2010(parameters),
        },
        f_min: args.f_min.unwrap_or(ours.f_min),
        f_max: args.f_max.unwrap_or(ours.f_max),
        ..ours
    };
    let (low, high) = match settings.method {
        Method::Evidence => (settings.f_min, settings.f_max),
        Method::Spectrum2010(parameters) => (parameters.f_min, parameters.f_max),
    };
    // Comparisons that a NaN fails too.
    if !(low > 0.0 && low < high && high <= 10_000.0) {
        return Err(Failure::usage(format!(
            "frequencies from {low} to {high} Hz make no range; they lie between 0 and 10000 Hz, \
                --f-min below --f-max"
        )));
    }
    if !(parameters.df >= 0.001
        && parameters.eps >= 0.0
        && parameters.eps < 1e4
        && parameters.alpha >= 0.0)
    {
        return Err(Failure::usage(
            "--df must be at least 0.001 Hz, --eps and --alpha not negative",
        ));
    }
    Ok(settings)
}

fn check_window(window: f64, events: &[Event], file: &Path) -> Result<(), Failure> {
    if !(window > 0.0 && window.is_finite()) {
        return Err(Failure::usage(format!(
            "--window {window}: a window lasts some seconds, such as 2"
        )));
    }
    if let (Some(first), Some(last)) = (events.first(), events.last())
        && (last.time - first.time) / window > MOST_WINDOWS
    {
        return Err(Failure::usage(format!(
            "{} spans {} s: that is more than a million windows of {window} s; are its times in \
                seconds?",
            file.display(),
            last.time - first.time
        )));
    }
    Ok(())
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn print(args: &PeriodArgs, answer: Answer) -> Result<(), Failure> {
    if args.json {
        let line = serde_json::to_string(&answer).expect("an answer has no key that is no text");
        return output::print(&(line + "\n"));
    }
    output::print(&text(&answer))
}

fn text(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(start) = answer.start_s {
        let _ = write!(text, "{start:10.3} s  ");
    }
    let analysis = &answer.analysis;
    if !analysis.periodic {
        let _ = writeln!(text, "not periodic ({} events)", analysis.events);
    }
    for (index, period) in analysis.periods.iter().enumerate() {
        let also = if index > 0 { "  also " } else { "" };
        let _ = write!(
            text,
            "{also}{:.3} Hz ({:.3} ms), confidence {:.2}, {:.0} % of the work",
            period.frequency_hz,
            period.period_ms,
            period.confidence,
            100.0 * period.share
        );
        if period.cycles > 0.0 && period.hits > 0 {
            let _ = write!(text, ", {} of {:.0} cycles on the beat", period.hits, period.cycles);
        }
        if !period.threads.is_empty() {
            let threads: Vec<String> = period.threads.iter().map(u32::to_string).collect();
            let _ = write!(text, ", threads {}", threads.join(" "));
        }
        text.push('\n');
    }
    text
}

/// The spectrum behind the choice over the first seconds of the recording, with a mark above each
/// chosen peak.
fn plot(events: &[Event], settings: &Settings) -> Result<String, Failure> {
    let spectrum = analyser::spectrum(events, settings);
    let highest = spectrum.iter().map(|&(_, amplitude)| amplitude).fold(1.0, f64::max);
    let analysis = windows::whole(events, settings);
    let line = Line { name: "spectrum".to_owned(), points: spectrum, dashed: false };
    let mark = |period: &Period| Mark {
        name: format!("{:.3} Hz", period.frequency_hz),
        at: (period.frequency_hz, highest),
    };
    let marks: Vec<Mark> = analysis.periods.iter().map(mark).collect();
    marked("frequency (Hz)", "amplitude", &[line], &marks)
        .map_err(|error| Failure::wrong(format!("{error:#}")))
}
