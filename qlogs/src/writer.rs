//! A file of qlog, written event by event.

use std::io;
use std::mem;

use units::Timestamp;

use crate::encode;
use crate::header::{AddressDetail, TraceHeader};
use crate::schema::{Event, Metrics};

/// Writes the events of one connection, seen from one side, as a JSON text sequence in the qlog
/// dialect 0.3.
///
/// Records are collected and handed to `W` in pieces of 64 KiB, so `W` needs no buffer of its own.
/// After the first few pieces nothing is allocated any more. [`finish`](Self::finish) hands over the
/// rest and reports errors; a writer that is merely dropped hands over the rest too, but nobody learns
/// whether that worked.
///
/// ```
/// use qlogs::{Event, TraceHeader, VantagePoint, Writer};
/// use units::Timestamp;
///
/// let header = TraceHeader::new(VantagePoint::Server, vec![1, 2, 3, 4, 5, 6, 7, 8]);
/// let mut writer = Writer::new(Vec::new(), &header)?;
/// writer.write(Timestamp::from_millis(20), &Event::Marker { message: "loss begins".into() });
/// let file = writer.finish()?;
/// assert_eq!(file[0], 0x1e);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: io::Write> {
    /// `None` only once [`Writer::finish`] has taken it.
    sink: Option<W>,
    /// Whole records that the sink has not got yet.
    buffer: Vec<u8>,
    /// The number of events in `buffer`.
    buffered_count: u64,
    addresses: AddressDetail,
    /// The time of the last record; times in a file never decrease.
    last_at: Timestamp,
    /// What a reader knows of the metrics.
    metrics: Metrics,
    error: Option<io::Error>,
    dropped_count: u64,
}

impl<W: io::Write> Writer<W> {
    /// Begins a file: hands the header to `sink` at once.
    ///
    /// # Errors
    ///
    /// Whatever `sink` says to the header.
    pub fn new(mut sink: W, header: &TraceHeader) -> io::Result<Self> {
        // One record may pass the mark by its own length; the slack keeps that from reallocating.
        let mut buffer = Vec::with_capacity(FLUSH_AT_BYTES + FLUSH_AT_BYTES / 8);
        encode::header(&mut buffer, header);
        sink.write_all(&buffer)?;
        buffer.clear();
        Ok(Self {
            sink: Some(sink),
            buffer,
            buffered_count: 0,
            addresses: header.addresses,
            last_at: Timestamp::ZERO,
            metrics: Metrics::default(),
            error: None,
            dropped_count: 0,
        })
    }

    /// Writes one event that happened at `at`, counted from the header's reference time.
    ///
    /// An `at` before that of the previous event counts as that one: viewers require an order, and two
    /// clock readings around one packet may disagree by a little. Of the metrics only the fields whose
    /// value differs from the one last written are written, and no event at all if none does.
    ///
    /// Never fails and never panics: after an I/O error, events are counted and dropped.
    pub fn write(&mut self, at: Timestamp, event: &Event) {
        if self.error.is_some() {
            self.dropped_count += 1;
            return;
        }
        self.last_at = self.last_at.max(at);
        if let Event::MetricsUpdated(metrics) = event {
            let changed = metrics.changed_since(&self.metrics);
            if changed == Metrics::default() {
                return;
            }
            self.metrics.update(&changed);
            self.append(&Event::MetricsUpdated(changed));
        } else {
            self.append(event);
        }
    }

    /// Hands everything written so far to the sink and flushes it. An error is kept for
    /// [`finish`](Self::finish).
    pub fn flush(&mut self) {
        self.hand_over();
        if self.error.is_none()
            && let Some(sink) = &mut self.sink
            && let Err(error) = sink.flush()
        {
            self.error = Some(error);
        }
    }

    /// Ends the file and returns the sink.
    ///
    /// # Errors
    ///
    /// The first error the sink reported since the beginning.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush();
        match (self.error.take(), self.sink.take()) {
            (None, Some(sink)) => Ok(sink),
            (Some(error), _) => Err(error),
            (None, None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The first error the sink reported, if any.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// How many events were lost to an I/O error: those in the piece the sink refused, of which it may
    /// have taken a part, and all later ones.
    pub fn dropped_count(&self) -> u64 {
        self.dropped_count
    }

    fn append(&mut self, event: &Event) {
        encode::event(&mut self.buffer, self.last_at, event, self.addresses);
        self.buffered_count += 1;
        if self.buffer.len() >= FLUSH_AT_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let events = mem::take(&mut self.buffered_count);
        if let Some(sink) = &mut self.sink
            && self.error.is_none()
            && let Err(error) = sink.write_all(&self.buffer)
        {
            // A record may be cut off now. Nothing may follow it: readers survive a broken last
            // record, not a broken one in the middle.
            self.error = Some(error);
            self.dropped_count += events;
        }
        self.buffer.clear();
    }
}

impl<W: io::Write> Drop for Writer<W> {
    fn drop(&mut self) {
        if self.sink.is_some() {
            self.flush();
        }
    }
}

/// How much is collected before the sink gets it. Smaller pieces make writing the log cost as much as
/// sending the packets.
const FLUSH_AT_BYTES: usize = 64 * 1024;
