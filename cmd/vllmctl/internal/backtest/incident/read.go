package incident

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Incident is something that is known to have happened.
type Incident struct {
	// Name is the name in the file, or the number of the entry.
	Name string `json:"name"`
	// From is when it started.
	From time.Time `json:"from"`
	// To is when it ended.
	To time.Time `json:"to"`
	// Targets are patterns of instances, such as chat-*:8000; empty means any.
	Targets []string `json:"targets,omitempty"`
	// Cause is a cause or a condition of the diagnosis; empty if unknown.
	Cause string `json:"cause,omitempty"`
}

// Concerns reports whether the incident is about a target, whose labels may be a pod as well
// as an instance.
func (i *Incident) Concerns(names ...string) bool {
	if len(i.Targets) == 0 {
		return true
	}
	for _, pattern := range i.Targets {
		for _, name := range names {
			// [::1]:8000 is an instance, and as a pattern something else.
			if pattern == name {
				return true
			}
			if matched, _ := path.Match(pattern, name); matched {
				return true
			}
			if host, _, found := strings.Cut(name, ":"); found {
				if matched, _ := path.Match(pattern, host); matched {
					return true
				}
			}
		}
	}
	return false
}

// The bounds of a file.
const (
	maxBytes     = 4 << 20
	maxIncidents = 10_000
)

// Read reads a file, of YAML or, where its name ends in .csv, of CSV. Times without a zone
// are in the zone; nil refuses them.
func Read(file string, zone *time.Location) ([]Incident, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the incidents cannot be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the incidents cannot be read: %w", err)
	case len(data) > maxBytes:
		return nil, fmt.Errorf("%s is larger than %d MiB; is this the right file?", file, maxBytes>>20)
	}
	var all []Incident
	if strings.EqualFold(filepath.Ext(file), ".csv") {
		all, err = parseCSV(data, zone)
	} else {
		all, err = parseYAML(data, zone)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no incident; write for example\n%s", file, example)
	}
	if len(all) > maxIncidents {
		return nil, fmt.Errorf("%s has %d incidents, and the limit is %d", file, len(all), maxIncidents)
	}
	slices.SortStableFunc(all, func(a, b Incident) int { return a.From.Compare(b.From) })
	return all, nil
}

const example = `incidents:
  - {name: slow GPU, from: 2026-11-20T10:00:00Z, to: 2026-11-20T10:30:00Z, targets: ["vllm-0:8000"], cause: slow_steps}`

// written is an incident as a file has it.
type written struct {
	Name    string   `yaml:"name"`
	From    string   `yaml:"from"`
	To      string   `yaml:"to"`
	Targets []string `yaml:"targets"`
	Cause   string   `yaml:"cause"`
}

func parseYAML(data []byte, zone *time.Location) ([]Incident, error) {
	var document struct {
		Incidents []yaml.Node `yaml:"incidents"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("this is not a list of incidents: %w; write for example\n%s", err, example)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has several documents; write all incidents into one")
	}
	var all []Incident
	var errs []error
	for i := range document.Incidents {
		node := &document.Incidents[i]
		place := fmt.Sprintf("line %d", node.Line)
		w, err := strict(node)
		if err == nil {
			var one Incident
			if one, err = w.incident(i, zone); err == nil {
				all = append(all, one)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		}
	}
	return all, errors.Join(errs...)
}

// strict decodes one incident. A node cannot be decoded strictly, so the keys are checked.
func strict(node *yaml.Node) (written, error) {
	var w written
	if node.Kind != yaml.MappingNode {
		return w, errors.New("an incident has keys: name, from, to, targets, cause")
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i].Value; !slices.Contains(columns, key) {
			return w, fmt.Errorf("the key %q is not known; the keys are %s", key, strings.Join(columns, ", "))
		}
	}
	err := node.Decode(&w)
	return w, err
}

var columns = []string{"name", "from", "to", "targets", "cause"}

func parseCSV(data []byte, zone *time.Location) ([]Incident, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	reader := csv.NewReader(bytes.NewReader(data))
	if first, _, _ := bytes.Cut(data, []byte("\n")); !bytes.ContainsRune(first, ',') && bytes.ContainsRune(first, ';') {
		reader.Comma = ';' // As spreadsheets write it where the comma is in numbers.
	}
	reader.TrimLeadingSpace = true
	header, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("the first line must name the columns: %s", strings.Join(columns, ","))
	}
	for i := range header {
		header[i] = strings.ToLower(strings.TrimSpace(header[i]))
		if !slices.Contains(columns, header[i]) {
			return nil, fmt.Errorf("the column %q is not known; the columns are %s", header[i], strings.Join(columns, ", "))
		}
		if slices.Contains(header[:i], header[i]) {
			return nil, fmt.Errorf("the column %q is there twice", header[i])
		}
	}
	var all []Incident
	var errs []error
	for number := 0; ; number++ {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var w written
		for i, value := range row {
			value = strings.TrimSpace(value)
			switch header[i] {
			case "name":
				w.Name = value
			case "from":
				w.From = value
			case "to":
				w.To = value
			case "cause":
				w.Cause = value
			case "targets":
				w.Targets = strings.FieldsFunc(value, func(r rune) bool { return r == ';' || r == ' ' })
			}
		}
		line, _ := reader.FieldPos(0)
		one, err := w.incident(number, zone)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", line, err))
			continue
		}
		all = append(all, one)
	}
	return all, errors.Join(errs...)
}

// longestIncident is the longest time of an incident; a longer one is a mistake in the year.
const longestIncident = 90 * 24 * time.Hour

// incident checks what is written.
func (w *written) incident(number int, zone *time.Location) (Incident, error) {
	one := Incident{Name: w.Name, Targets: w.Targets, Cause: w.Cause}
	if one.Name == "" {
		one.Name = "incident " + strconv.Itoa(number+1)
	}
	var err error
	if one.From, err = ParseTime(w.From, zone); err != nil {
		return one, fmt.Errorf("from: %w", err)
	}
	if strings.TrimSpace(w.To) == "" {
		return one, errors.New("to: is missing; for a lasting incident, write the end of the comparison")
	}
	if one.To, err = ParseTime(w.To, zone); err != nil {
		return one, fmt.Errorf("to: %w", err)
	}
	switch {
	case !one.To.After(one.From):
		return one, fmt.Errorf("the incident ends (%s) before it starts (%s)", w.To, w.From)
	case one.To.Sub(one.From) > longestIncident:
		return one, fmt.Errorf("the incident lasts %s; is the year right?", one.To.Sub(one.From))
	}
	for _, pattern := range one.Targets {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return one, fmt.Errorf("targets: %q is not a pattern; write an instance, as vllm-0:8000 or vllm-*", pattern)
		}
	}
	if one.Cause == "" {
		return one, nil
	}
	_, isCause := catalog.CauseByName(one.Cause)
	if _, isCondition := catalog.ConditionByName(one.Cause); !isCause && !isCondition {
		return one, fmt.Errorf("cause: %q is neither a cause nor a condition of the diagnosis; omit it, or write one of %s",
			one.Cause, strings.Join(causes(), ", "))
	}
	return one, nil
}

func causes() []string {
	var out []string
	for _, c := range catalog.Causes() {
		out = append(out, c.Name)
	}
	for _, c := range catalog.Conditions() {
		if c.Severity >= 2 {
			out = append(out, c.Name)
		}
	}
	return out
}

// layouts are the forms of a time without a zone.
var layouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// ParseTime reads a time with its zone, as 2026-11-20T10:00:00Z or 2026-11-20 10:00:00+01:00,
// or without one where a zone is given. A number is seconds since 1970.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, errors.New("is missing; write for example 2026-11-20T10:00:00Z")
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Truncate(time.Millisecond), nil
		}
	}
	if s, err := strconv.ParseInt(text, 10, 64); err == nil && s > 1e9 && s < 1e11 {
		return time.Unix(s, 0).UTC(), nil
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, text, time.UTC)
		if err != nil {
			continue
		}
		if zone == nil {
			return time.Time{}, fmt.Errorf("%q has no time zone; write 2026-11-20T10:00:00Z or …+01:00, or give --time-zone", text)
		}
		in := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, zone)
		if in.Hour() != t.Hour() || in.Minute() != t.Minute() {
			return time.Time{}, fmt.Errorf("%q does not exist in %s, because the clocks changed; write the time with its zone", text, zone)
		}
		if twice(in) {
			return time.Time{}, fmt.Errorf("%q exists twice in %s, because the clocks changed; write the time with its zone", text, zone)
		}
		return in.UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write for example 2026-11-20T10:00:00Z", text)
}

// twice reports whether the clock of its zone showed a time twice.
func twice(t time.Time) bool {
	const shown = "2006-01-02 15:04:05"
	// Clocks are changed by at most two hours, and by no less than half of one.
	for step := 30 * time.Minute; step <= 2*time.Hour; step += 30 * time.Minute {
		if text := t.Format(shown); t.Add(step).Format(shown) == text || t.Add(-step).Format(shown) == text {
			return true
		}
	}
	return false
}
