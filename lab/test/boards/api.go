package boards

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// prometheusAPI is the part of Prometheus's HTTP API that dashboards use.
type prometheusAPI struct {
	storage storage.Queryable
	engine  *promql.Engine
	// now is the time of a query without one.
	now time.Time
}

// point is a value as the API writes it: seconds, and the number as a string.
type point [2]any

// answered is one series of an answer.
type answered struct {
	Metric map[string]string `json:"metric"`
	Value  *point            `json:"value,omitempty"`
	Values []point           `json:"values,omitempty"`
}

// NewAPI answers the queries of dashboards from a storage. A query without a time is
// evaluated at now.
func NewAPI(from storage.Queryable, engine *promql.Engine, now time.Time) http.Handler {
	a := &prometheusAPI{storage: from, engine: engine, now: now}
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*http.Request) (any, error){
		"query":               a.query,
		"query_range":         a.queryRange,
		"series":              a.series,
		"label/{name}/values": a.labelValues,
		"metadata":            func(*http.Request) (any, error) { return map[string]any{}, nil },
		"parse_query":         func(*http.Request) (any, error) { return nil, errors.New("parse_query is not supported") },
	} {
		mux.HandleFunc("/api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			body := map[string]any{"status": "success"}
			data, err := answer(r)
			if body["data"] = data; err != nil {
				body = map[string]any{"status": "error", "errorType": "bad_data", "error": err.Error()}
			}
			w.Header().Set("Content-Type", "application/json")
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			// The reader may be gone.
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	return mux
}

func (a *prometheusAPI) query(r *http.Request) (any, error) {
	at, err := readTime(r.FormValue("time"), a.now)
	if err != nil {
		return nil, err
	}
	q, err := a.engine.NewInstantQuery(r.Context(), a.storage, nil, r.FormValue("query"), at)
	if err != nil {
		return nil, err
	}
	return run(r, q)
}

func (a *prometheusAPI) queryRange(r *http.Request) (any, error) {
	start, startErr := readTime(r.FormValue("start"), a.now)
	end, endErr := readTime(r.FormValue("end"), a.now)
	step, stepErr := readStep(r.FormValue("step"))
	if err := errors.Join(startErr, endErr, stepErr); err != nil {
		return nil, err
	}
	if end.Before(start) || end.Sub(start)/step > 11000 {
		return nil, fmt.Errorf("from %s to %s by %s is not a range of at most 11000 points", start, end, step)
	}
	q, err := a.engine.NewRangeQuery(r.Context(), a.storage, nil, r.FormValue("query"), start, end, step)
	if err != nil {
		return nil, err
	}
	return run(r, q)
}

func run(r *http.Request, q promql.Query) (any, error) {
	defer q.Close()
	result := q.Exec(r.Context())
	if result.Err != nil {
		return nil, result.Err
	}
	list := []answered{}
	switch v := result.Value.(type) {
	case promql.Scalar:
		return map[string]any{"resultType": "scalar", "result": newPoint(v.T, v.V)}, nil
	case promql.Vector:
		for _, s := range v {
			p := newPoint(s.T, s.F)
			list = append(list, answered{Metric: s.Metric.Map(), Value: &p})
		}
	case promql.Matrix:
		for _, s := range v {
			one := answered{Metric: s.Metric.Map()}
			for _, f := range s.Floats {
				one.Values = append(one.Values, newPoint(f.T, f.F))
			}
			list = append(list, one)
		}
	default:
		return nil, fmt.Errorf("a result of type %s is not supported", result.Value.Type())
	}
	return map[string]any{"resultType": result.Value.Type(), "result": list}, nil
}

func newPoint(ms int64, value float64) point {
	return point{float64(ms) / 1000, model.SampleValue(value).String()}
}

func (a *prometheusAPI) series(r *http.Request) (any, error) {
	list := []map[string]string{}
	err := a.each(r, func(q storage.Querier, matchers []*labels.Matcher) error {
		found := q.Select(r.Context(), true, nil, matchers...)
		for found.Next() {
			list = append(list, found.At().Labels().Map())
		}
		return found.Err()
	})
	return list, err
}

func (a *prometheusAPI) labelValues(r *http.Request) (any, error) {
	// A name with dots is written as U__k8s_2e_pod_2e_name in the path.
	name := model.UnescapeName(r.PathValue("name"), model.ValueEncodingEscaping)
	all := []string{}
	err := a.each(r, func(q storage.Querier, matchers []*labels.Matcher) error {
		values, _, err := q.LabelValues(r.Context(), name, nil, matchers...)
		all = append(all, values...)
		return err
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

// each calls do for each selector of a request, and once without matchers if it has none.
func (a *prometheusAPI) each(r *http.Request, do func(storage.Querier, []*labels.Matcher) error) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	start, startErr := readTime(r.FormValue("start"), time.Unix(0, 0))
	end, endErr := readTime(r.FormValue("end"), a.now)
	if err := errors.Join(startErr, endErr); err != nil {
		return err
	}
	q, err := a.storage.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return err
	}
	defer q.Close()
	selectors := selectorsOf(r.Form)
	if len(selectors) == 0 {
		return do(q, nil)
	}
	for _, selector := range selectors {
		matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
		if err != nil {
			return err
		}
		if err := do(q, matchers); err != nil {
			return err
		}
	}
	return nil
}

func selectorsOf(form url.Values) []string {
	return slices.DeleteFunc(slices.Clone(form["match[]"]), func(s string) bool { return strings.TrimSpace(s) == "" })
}

func readTime(text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < 1e11 {
		return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, fmt.Errorf("%q is not a time", text)
	}
	return at, nil
}

func readStep(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0.001 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	step, err := model.ParseDuration(text)
	if err != nil || step <= 0 {
		return 0, fmt.Errorf("%q is not a step", text)
	}
	return time.Duration(step), nil
}
