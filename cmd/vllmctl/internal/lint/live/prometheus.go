package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// The bounds of what a Prometheus is asked.
const (
	maxQueries = 5_000
	// lookBack is the time in which a series must have been there.
	lookBack = 24 * time.Hour
)

// Prometheus asks the API of a Prometheus, Mimir, Thanos or Cortex for labels and their
// values.
type Prometheus struct {
	client  *http.Client
	base    *url.URL
	address string
	until   time.Time
	labels  map[string][]string
	values  map[[2]string][]string
	queries int
}

// NewPrometheus returns a source. until is the end of the day that is looked at. The address
// is the one below which /api/v1 is.
func NewPrometheus(client *http.Client, address string, until time.Time) (*Prometheus, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("write the address with http:// or https:// and a host")
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/api/v1")
	return &Prometheus{client: client, base: u, address: Shown(address), until: until, labels: map[string][]string{}, values: map[[2]string][]string{}}, nil
}

// Version is not known: servers can have several.
func (*Prometheus) Version() string { return "" }

// Where says which Prometheus it is.
func (p *Prometheus) Where() string { return "the Prometheus " + p.address }

// Stored is true.
func (*Prometheus) Stored() bool { return true }

// Reach returns an error if the API does not answer.
func (p *Prometheus) Reach(ctx context.Context) error {
	_, err := p.list(ctx, "/api/v1/labels", `up`)
	return err
}

// Metric returns the labels of a name and the values of some of them.
func (p *Prometheus) Metric(ctx context.Context, name string, values []string) (*Metric, error) {
	selector := fmt.Sprintf("{__name__=%q}", name)
	all, asked := p.labels[name]
	if !asked {
		var err error
		if all, err = p.list(ctx, "/api/v1/labels", selector); err != nil {
			return nil, err
		}
		p.labels[name] = all
	}
	if !slices.Contains(all, model.MetricNameLabel) {
		return nil, nil
	}
	m := &Metric{Labels: map[string][]string{}}
	for _, label := range all {
		if label == model.MetricNameLabel {
			continue
		}
		m.Labels[label] = nil
		if !slices.Contains(values, label) {
			continue
		}
		key := [2]string{name, label}
		if _, asked := p.values[key]; !asked {
			list, err := p.list(ctx, "/api/v1/label/"+url.PathEscape(label)+"/values", selector)
			if err != nil {
				return nil, err
			}
			if len(list) > maxValues {
				list = nil
			}
			p.values[key] = list
		}
		m.Labels[label] = p.values[key]
	}
	return m, nil
}

// list asks for a list of words.
func (p *Prometheus) list(ctx context.Context, path, match string) ([]string, error) {
	p.queries++
	if p.queries > maxQueries {
		return nil, fmt.Errorf("more than %d queries are needed; check fewer files at a time", maxQueries)
	}
	u := *p.base
	u.Path += path
	query := u.Query() // It can have what a proxy asks for.
	query.Set("match[]", match)
	query.Set("start", unix(p.until.Add(-lookBack)))
	query.Set("end", unix(p.until))
	query.Set("limit", strconv.Itoa(maxValues+1))
	u.RawQuery = query.Encode()
	body, _, err := get(ctx, p.client, &u, maxAnswer, "application/json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status string
		Error  string
		Data   []string
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("its answer does not come from the API of Prometheus; check the address, without /api/v1")
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("it answers %q", answer.Error)
	}
	return answer.Data, nil
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
