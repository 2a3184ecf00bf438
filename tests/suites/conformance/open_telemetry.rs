//! The spans as OpenTelemetry gets them, in the way that core/README.md shows.

use std::sync::{Arc, Mutex};

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use stanchion::LockOptions;
use stanchion::blocking::Client;

use crate::traces::listen;

mod readme {
    // core/README.md has it from here,
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::layer::SubscriberExt;

    /// For `tracing::subscriber::set_global_default`. The provider has an exporter of your choice.
    pub fn spans_to(provider: &SdkTracerProvider) -> impl tracing::Subscriber + use<> {
        let tracer = provider.tracer("my-service");
        tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(tracer))
    }
    // to here.
}

#[derive(Clone, Debug, Default)]
struct Exporter(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

#[test]
fn open_telemetry_gets_every_operation_by_its_name() {
    let exporter = Exporter::default();
    let provider =
        opentelemetry_sdk::trace::SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    listen(readme::spans_to(&provider), || {
        let lock = Client::open("memory:").unwrap().lock("a");
        lock.acquire(LockOptions::new()).unwrap().release().unwrap();
    });
    let spans = exporter.0.lock().unwrap();
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["acquire", "release"]);
    let outcome = spans[0].attributes.iter().find(|attribute| attribute.key.as_str() == "outcome");
    assert_eq!(outcome.unwrap().value.as_str(), "granted");
}

#[test]
fn the_readme_shows_this_very_text() {
    let (source, readme) = (include_str!("open_telemetry.rs"), include_str!("../../../core/README.md"));
    let text = source.split("// core/README.md has it from here,\n").nth(1).unwrap();
    let text = text.split("    // to here.").next().unwrap();
    let text: String =
        text.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert!(readme.contains(&text), "core/README.md has not:\n{text}");
}
