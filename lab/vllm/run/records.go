package run

import (
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
)

// Record is a log record of the connector. At is in seconds since the beginning.
type Record struct {
	At    float64 `json:"at"`
	Level string  `json:"level"`
	// Condition and Cause are those that it reports.
	Condition string `json:"condition"`
	Cause     string `json:"cause,omitempty"`
	Text      string `json:"text"`
}

// Records returns the records of logs.
func Records(logs plog.Logs, began time.Time) (out []Record) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, l := range sl.LogRecords().All() {
				r := Record{At: l.Timestamp().AsTime().Sub(began).Seconds(), Level: l.SeverityText(), Text: l.Body().AsString()}
				for name, to := range map[string]*string{"vllm.diagnosis.condition": &r.Condition, "vllm.diagnosis.cause": &r.Cause} {
					if v, there := l.Attributes().Get(name); there {
						*to = v.AsString()
					}
				}
				out = append(out, r)
			}
		}
	}
	return out
}
