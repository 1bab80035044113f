package vllmfleetextension

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// number is null in JSON where it is not known.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
	}
	return []byte("null"), nil
}

// The documents of /api/v1. schema.json describes them.
type (
	fleetDocument struct {
		Version int              `json:"version"`
		At      time.Time        `json:"at"`
		Suspect bool             `json:"collector_suspect"`
		Engines []engineDocument `json:"engines"`
		Pools   []poolDocument   `json:"pools"`
		Budgets []budgetDocument `json:"budgets"`
	}
	diagnosisDocument struct {
		ID        string    `json:"id"`
		Processor string    `json:"processor"`
		Condition string    `json:"condition"`
		Severity  int       `json:"severity"`
		Cause     string    `json:"cause"`
		Detail    string    `json:"cause_detail"`
		Since     time.Time `json:"since"`
	}
	engineDocument struct {
		diagnosisDocument
		Server          string    `json:"server"`
		Address         string    `json:"address"`
		Cluster         string    `json:"cluster"`
		Namespace       string    `json:"namespace"`
		Pod             string    `json:"pod"`
		Node            string    `json:"node"`
		Model           string    `json:"model"`
		Engine          string    `json:"engine"`
		ServerVersion   string    `json:"server_version"`
		New             bool      `json:"new"`
		Fitness         string    `json:"fitness"`
		Serve           bool      `json:"serve"`
		ScrapeFailure   string    `json:"scrape_failure"`
		DataAt          time.Time `json:"data_at"`
		Running         number    `json:"running"`
		Waiting         number    `json:"waiting"`
		KV              number    `json:"kv_cache_utilization"`
		FirstToken      number    `json:"time_to_first_token_mean_seconds"`
		FirstTokenUsual number    `json:"time_to_first_token_usual_seconds"`
		TokenGap        number    `json:"inter_token_latency_mean_seconds"`
		TokenGapUsual   number    `json:"inter_token_latency_usual_seconds"`
	}
	poolDocument struct {
		diagnosisDocument
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes"`
		Engines    int               `json:"engines"`
	}
	budgetDocument struct {
		Objective string `json:"objective"`
		Server    string `json:"server"`
		Model     string `json:"model"`
		Remaining number `json:"remaining_ratio"`
		Burn      number `json:"burn_rate"`
	}
	detailDocument struct {
		Version  int                `json:"version"`
		At       time.Time          `json:"at"`
		Engine   *engineDocument    `json:"engine,omitempty"`
		Pool     *poolDocument      `json:"pool,omitempty"`
		Sentence string             `json:"sentence"`
		Evidence []evidenceDocument `json:"evidence"`
		Next     []string           `json:"next"`
		Runbook  string             `json:"runbook"`
		Board    string             `json:"board"`
		Events   []eventDocument    `json:"events"`
	}
	evidenceDocument struct {
		Name  string `json:"name"`
		Value number `json:"value"`
		Usual number `json:"usual"`
		Text  string `json:"text"`
	}
	eventsDocument struct {
		Version int             `json:"version"`
		At      time.Time       `json:"at"`
		Events  []eventDocument `json:"events"`
	}
	eventDocument struct {
		ID        string    `json:"id"`
		At        time.Time `json:"at"`
		Subject   string    `json:"subject"`
		Previous  string    `json:"previous_condition"`
		Condition string    `json:"condition"`
		Severity  int       `json:"severity"`
		Cause     string    `json:"cause"`
		Sentence  string    `json:"sentence"`
	}
)

// apiVersion is that of the documents. It goes up where a key changes its meaning or goes.
const apiVersion = 1

func (v *view) fleet() *fleetDocument {
	d := &fleetDocument{
		Version: apiVersion, At: v.at, Suspect: v.suspect,
		Engines: make([]engineDocument, 0, len(v.engines)), Pools: make([]poolDocument, 0, len(v.pools)), Budgets: make([]budgetDocument, 0, len(v.budgets)),
	}
	for i := range v.engines {
		d.Engines = append(d.Engines, v.engines[i].document())
	}
	for i := range v.pools {
		d.Pools = append(d.Pools, v.pools[i].document())
	}
	for _, b := range v.budgets {
		d.Budgets = append(d.Budgets, budgetDocument{b.Objective, b.Server, b.Model, number(b.Remaining), number(b.Burn)})
	}
	slices.SortStableFunc(d.Engines, func(a, b engineDocument) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Engine, b.Engine))
	})
	slices.SortStableFunc(d.Pools, func(a, b poolDocument) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Name, b.Name))
	})
	return d
}

func diagnosisOf(id, processor string, d *fleet.Diagnosis) diagnosisDocument {
	return diagnosisDocument{id, processor, d.Condition, d.Severity, d.Cause, d.Detail, d.Since.UTC()}
}

func (p *pool) document() poolDocument {
	return poolDocument{diagnosisOf(p.Key, p.processor, &p.Diagnosis), p.Name, p.Attributes, p.Engines}
}

func (e *engine) document() engineDocument {
	n := func(of fleet.Number) number { return number(e.Numbers[of]) }
	return engineDocument{
		diagnosisDocument: diagnosisOf(e.Key, e.processor, &e.Diagnosis),
		Server:            e.Server, Address: e.Address, Cluster: e.Cluster, Namespace: e.Namespace, Pod: e.Pod, Node: e.Node,
		Model: e.Model, Engine: e.Engine.Engine, ServerVersion: e.Version, New: e.New,
		Fitness: fitnessWords[e.server.said()].name, Serve: !e.server.refused, ScrapeFailure: e.Failure, DataAt: e.At.UTC(),
		Running: n(fleet.Running), Waiting: n(fleet.Waiting), KV: n(fleet.KV),
		FirstToken: n(fleet.FirstToken), FirstTokenUsual: n(fleet.FirstTokenUsual), TokenGap: n(fleet.TokenGap), TokenGapUsual: n(fleet.TokenGapUsual),
	}
}

func (d *detailDocument) say(detail *fleet.Detail) {
	d.Sentence, d.Next, d.Runbook, d.Board = detail.Sentence, append([]string{}, detail.Next...), detail.Runbook, detail.Board
	lines := wording.Lines(detail.Evidence)
	d.Evidence = make([]evidenceDocument, 0, len(lines))
	for i, s := range detail.Evidence {
		d.Evidence = append(d.Evidence, evidenceDocument{s.Name, number(s.Value), number(s.Usual), lines[i]})
	}
}

func eventOf(e *fleet.Event) eventDocument {
	return eventDocument{e.Key, e.At.UTC(), e.Subject, e.From, e.Condition, e.Severity, e.Cause, e.Sentence}
}

// encode is compact JSON.
func encode(document any) ([]byte, error) { return json.Marshal(document) }
