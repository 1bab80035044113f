package live

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Table is what is known at a moment. All texts of servers in it are printable.
type Table struct {
	At               time.Time
	Interval, Window time.Duration
	Rows             []Row
	// Targets is how many servers are named, Servers how many have been scraped, and Failing
	// how many of those could not be read the last time.
	Targets, Servers, Failing int
	// Engines and Pools are how many rows are about one.
	Engines, Pools int
	// Conditions are how many engines have each, the worst first.
	Conditions []Count
	// LeftOut is how many engines, pools and servers have no row. There may be more than that
	// where it is large.
	LeftOut int
	// Early is how many rows have been watched for less than a problem needs to be reported.
	Early int
	// Reads is the least number of scrapes that a server that can be read has had, Scrapes the
	// least number that any server has had, whether they succeeded or not.
	Reads, Scrapes int
	// From is the address of the collector that was asked; empty where servers are scraped.
	From string
	// Suspect is true where the collector says that it may have lost its network, and Trouble why it could not be asked
	// the last time.
	Suspect bool
	Trouble string
}

// Count is how many engines have a condition.
type Count struct {
	Condition string
	Engines   int
}

// Row is an engine, a pool, or a server of which no engine is known.
type Row struct {
	// Key stays the same as long as the engine is known, ServerKey as long as its server is.
	Key, ServerKey string
	// Pool is the name of a pool; empty for all others. Others are the values of its attributes besides model_name.
	Pool, Others string
	Replicas     int
	// Address is that of the server, Namespace and Pod are those of Kubernetes.
	Address, Namespace, Pod string
	Version                 string
	// Kind is the kind of a server other than vLLM, as "gateway".
	Kind          string
	Model, Engine string
	// Several is true if the server has several engines.
	Several bool

	verdict.Verdict
	Severity int
	// Since is when the condition was first reported in this session.
	Since time.Time
	// Unread is why the last scrape failed, UnreadKind is the kind of the failure and
	// UnreadSince the time of the first failure; empty while scrapes succeed.
	Unread, UnreadKind string
	UnreadSince        time.Time
	// Reads is how many scrapes have succeeded.
	Reads int
	// Watched is for how long the engine or the pool has been judged without a failed scrape.
	Watched time.Duration
	// Early is how long it has to be watched before a problem can be reported; 0 if it has
	// been, or if something is reported already.
	Early  time.Duration
	Values [numFields]float64

	// Details are nil unless they were asked for.
	Details *Details
	// Heard is nil where servers are scraped.
	Heard *Heard
}

// Details are what only the page of one engine shows.
type Details struct {
	// Sentence is what the processor says of the condition, where its log is more precise
	// than the catalogue.
	Sentence  string
	Quantiles [numLatencies][]Quantile
	// History are the changes in this session, the oldest first.
	History []Transition
	Defects Defects
}

// Table returns what is known. Details cost more than all else.
func (s *State) Table(at time.Time, details bool) *Table {
	t := &Table{At: at, LeftOut: len(s.leftOut), Reads: math.MaxInt, Scrapes: math.MaxInt, Rows: make([]Row, 0, s.rows)}
	for key, pool := range s.pools {
		t.Pools++
		row := Row{Key: "pool\x00" + key, Pool: pool.name, Others: pool.others, Model: pool.model, Replicas: pool.replicas}
		row.judge(pool, details)
		t.Rows = append(t.Rows, row)
	}
	for key, server := range s.servers {
		t.Servers++
		t.LeftOut += server.leftOut
		t.Scrapes = min(t.Scrapes, server.scrapes)
		if server.up {
			t.Reads = min(t.Reads, server.reads)
		} else {
			t.Failing++
		}
		row := s.serverRow(key, server)
		if len(server.engines) == 0 {
			t.Rows = append(t.Rows, row)
		}
		for name, engine := range server.engines {
			t.Engines++
			row := row
			row.Key += "\x00" + name
			row.Model, row.Engine = engine.model, engine.engine
			row.judge(engine, details)
			row.Values[Errors] = server.errors
			if server.up && server.since.After(engine.began) {
				row.Watched = server.at.Sub(server.since)
			}
			if details {
				said := s.notes.sentences[server.instance+"\x00"+name]
				if said.condition == row.Condition && said.cause == row.Cause {
					row.Details.Sentence = said.text
				}
				row.Details.Defects = s.notes.defects[server.version]
			}
			t.Rows = append(t.Rows, row)
		}
	}
	if t.Reads == math.MaxInt {
		t.Reads = 0
	}
	if t.Scrapes == math.MaxInt {
		t.Scrapes = 0
	}
	t.count()
	return t
}

// count counts the conditions of the engines.
func (t *Table) count() {
	counts := map[string]int{}
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Pool == "" && r.Condition != "" {
			counts[r.State()]++
		}
	}
	t.Conditions = nil
	for _, condition := range slices.SortedFunc(maps.Keys(counts), byPrecedence) {
		t.Conditions = append(t.Conditions, Count{condition, counts[condition]})
	}
}

// markEarly marks the rows that have been watched for less than a problem needs to be reported.
func (t *Table) markEarly(judging time.Duration) {
	for i := range t.Rows {
		r, needed := &t.Rows[i], judging
		if r.Condition == "degraded" {
			needed = max(needed, harmShows) // A notice so far.
		}
		if r.Condition != "" && !r.Urgent() && r.Watched < needed {
			r.Early = needed
			t.Early++
		}
	}
	t.count()
}

// notJudged counts the rows of servers that can be read and that say nothing about how they are; early are those of them
// that have just been seen.
func (t *Table) notJudged() (n, early int) {
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Unread == "" && r.Pool == "" && (r.Condition == "" || r.Condition == "unknown") {
			n++
			if r.notYet() {
				early++
			}
		}
	}
	return n, early
}

// notYet reports whether it cannot be judged because it has just been seen.
func (r *Row) notYet() bool {
	return r.Condition == "unknown" && !r.Urgent() && (r.Early > 0 || r.Heard != nil && r.Heard.New)
}

// serverRow returns what all rows of a server have in common.
func (s *State) serverRow(key string, v *server) Row {
	row := Row{
		Key: "server\x00" + key, ServerKey: key, Address: v.address, Namespace: v.namespace, Pod: v.pod, Version: v.version, Kind: v.kind,
		Several: len(v.engines) > 1, Reads: v.reads,
	}
	for i := range row.Values {
		row.Values[i] = math.NaN()
	}
	if !v.up && v.scrapes > 0 {
		row.UnreadSince, row.UnreadKind = v.since, v.failure
		row.Unread = cmp.Or(s.notes.failures[v.instance], "the scrape failed: "+v.failure)
	}
	return row
}

// judge takes what is reported of an engine or a pool.
func (r *Row) judge(s *subject, details bool) {
	r.Verdict, r.Severity, r.Since, r.Values = s.verdict(details), s.severity, s.since, s.values
	r.Watched = s.at.Sub(s.began)
	if !details {
		return
	}
	r.Details = &Details{History: slices.Clone(s.history)}
	for latency := range numLatencies {
		r.Details.Quantiles[latency] = s.sorted(latency)
	}
}

// byPrecedence orders conditions as the catalogue does, which lists the worst of what applies
// first, but those that ask for action before all others.
func byPrecedence(a, b string) int {
	return cmp.Or(-cmp.Compare(severityOf(a), severityOf(b)), cmp.Compare(precedence(a), precedence(b)), cmp.Compare(a, b))
}

// precedence is the place of a condition in the catalogue.
func precedence(condition string) int {
	i := slices.IndexFunc(catalog.Conditions(), func(c catalog.Condition) bool { return c.Name == condition })
	if i < 0 {
		return len(catalog.Conditions())
	}
	return i
}

// severityOf is the severity that a condition has by itself.
func severityOf(condition string) int {
	if c, known := catalog.ConditionByName(condition); known {
		return c.Severity
	}
	return 0
}
