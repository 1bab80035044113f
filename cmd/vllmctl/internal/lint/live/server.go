package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// The bounds of what is read from a server.
const (
	maxBody    = 64 << 20
	maxAnswer  = 16 << 20
	maxNames   = 20_000
	maxValues  = 2_000
	maxLabel   = 1 << 10
	maxVersion = 64 << 10
)

// Servers are the texts of one or several servers. A name is there if one of them has it.
type Servers struct {
	where    string
	version  string
	metrics  map[string]*Metric
	declared map[string]bool
	full     map[[2]string]bool
}

// ReadServers reads the metrics of servers. It fails if one of them cannot be read, because
// what it has would be missing then.
func ReadServers(ctx context.Context, client *http.Client, addresses []string) (*Servers, error) {
	s := &Servers{metrics: map[string]*Metric{}, declared: map[string]bool{}, full: map[[2]string]bool{}}
	s.where = "the server " + Shown(addresses[0])
	if len(addresses) > 1 {
		s.where = fmt.Sprintf("none of the %d servers", len(addresses))
	}
	var failed []error
	versions := map[string]bool{}
	for _, address := range addresses {
		if err := s.read(ctx, client, address, versions); err != nil {
			failed = append(failed, fmt.Errorf("--server %s: %w", Shown(address), err))
		}
	}
	if len(versions) == 1 {
		for v := range versions {
			s.version = v
		}
	}
	return s, errors.Join(failed...)
}

// Version returns the version of the servers.
func (s *Servers) Version() string { return s.version }

// Where says which servers they are.
func (s *Servers) Where() string { return s.where }

// Stored is false: it is the text of servers.
func (*Servers) Stored() bool { return false }

// Metric returns what the servers have of a name.
func (s *Servers) Metric(_ context.Context, name string, _ []string) (*Metric, error) {
	if m, has := s.metrics[name]; has {
		return m, nil
	}
	for _, suffix := range []string{"", "_bucket", "_sum", "_count", "_total"} {
		if base, has := strings.CutSuffix(name, suffix); has && s.declared[base] {
			return &Metric{Declared: true}, nil
		}
	}
	return nil, nil
}

// Shown returns an address for messages: without the user, the password and the query, which can hold a
// token.
func Shown(address string) string {
	u, err := url.Parse(address)
	if err != nil || strings.Contains(u.Opaque, "@") {
		return "an address that cannot be read"
	}
	shown := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}
	return shown.String()
}

// metricsURL returns the address of the metrics of a server.
func metricsURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("it is not an address")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("write the address with http:// or https:// and a host")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	return u, nil
}

func (s *Servers) read(ctx context.Context, client *http.Client, address string, versions map[string]bool) error {
	u, err := metricsURL(address)
	if err != nil {
		return err
	}
	body, kind, err := get(ctx, client, u, maxBody, "text/plain;version=0.0.4,*/*;q=0.1")
	if err != nil {
		return err
	}
	if err := s.parse(body, kind); err != nil {
		return err
	}
	version := *u
	version.Path = strings.TrimSuffix(u.Path, "/metrics") + "/version"
	if body, _, err := get(ctx, client, &version, maxVersion, "application/json"); err == nil {
		var answer struct{ Version string }
		if json.Unmarshal(body, &answer) == nil && answer.Version != "" && len(answer.Version) < 100 {
			versions[answer.Version] = true
			return nil
		}
	}
	versions[""] = true
	return nil
}

// get reads an answer of a bounded size.
func get(ctx context.Context, client *http.Client, u *url.URL, limit int64, accept string) (body []byte, kind string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Accept", accept)
	answer, err := client.Do(request)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, "", fmt.Errorf("it cannot be read: %w", err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, limit+1))
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, "", refusal(answer, body)
	case err != nil:
		return nil, "", fmt.Errorf("its answer breaks off: %w", err)
	case int64(len(body)) > limit:
		return nil, "", fmt.Errorf("its answer is larger than %d MiB", limit>>20)
	}
	return body, answer.Header.Get("Content-Type"), nil
}

// maxReason is the size of the longest reason of a server that is repeated.
const maxReason = 300

// refusal says what a server answers instead, with its reason where it gives one as Prometheus does.
func refusal(answer *http.Response, body []byte) error {
	var said struct{ Error string }
	switch {
	case json.Unmarshal(body, &said) == nil && said.Error != "" && len(said.Error) <= maxReason:
		return fmt.Errorf("it answers %s: %s", answer.Status, said.Error)
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("it answers %s; use --token-file or --header", answer.Status)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("it answers %s to %s; check the address", answer.Status, answer.Request.URL.Path)
	}
	return fmt.Errorf("it answers %s", answer.Status)
}

// parse reads the text with Prometheus's own parser.
func (s *Servers) parse(body []byte, kind string) error {
	switch begin := bytes.TrimSpace(body); {
	case bytes.HasPrefix(begin, []byte("<")):
		return errors.New("its answer is a web page and not metrics; check the address")
	case bytes.HasPrefix(begin, []byte("{")):
		return errors.New("its answer is JSON and not metrics; check the address, and give that of a Prometheus with --prometheus")
	}
	if len(body) > 0 && body[len(body)-1] != '\n' {
		body = append(body, '\n')
	}
	p, err := textparse.New(body, kind, labels.NewSymbolTable(), textparse.ParserOptions{FallbackContentType: "text/plain"})
	if p == nil {
		return fmt.Errorf("its answer has the type %q, without metrics: %w", kind, err)
	}
	read, err := s.entries(p)
	if err != nil {
		// One line that is wrong ends Prometheus's parser, so that each is read alone then.
		read = s.lines(body, strings.HasPrefix(kind, "application/openmetrics-text"))
	}
	switch {
	case read == 0 && err != nil:
		return fmt.Errorf("its metrics cannot be read: %w", err)
	case read == 0:
		return errors.New("its answer has no metrics")
	}
	return nil
}

// entries adds what a parser reads, up to the first line that it cannot read, and counts series and types.
func (s *Servers) entries(p textparse.Parser) (read int, err error) {
	for {
		entry, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil:
			return read, err
		}
		switch entry {
		case textparse.EntryType:
			name, _ := p.Type()
			s.declare(string(name))
			read++
		case textparse.EntrySeries, textparse.EntryHistogram:
			var set labels.Labels
			p.Labels(&set)
			s.add(set)
			read++
		case textparse.EntryInvalid, textparse.EntryHelp, textparse.EntryComment, textparse.EntryUnit:
		}
	}
}

// lines adds each line that can be read alone. The name in another one counts as declared: it must not be
// said to be missing.
func (s *Servers) lines(body []byte, openMetrics bool) (read int) {
	symbols := labels.NewSymbolTable()
	for line := range bytes.Lines(body) {
		var p textparse.Parser
		if openMetrics {
			p = textparse.NewOpenMetricsParser(append(bytes.Clone(line), "# EOF\n"...), symbols)
		} else {
			p = textparse.NewPromParser(line, symbols, false)
		}
		n, err := s.entries(p)
		read += n
		words := strings.FieldsFunc(string(line), func(r rune) bool { return r <= ' ' || r == '{' })
		switch {
		case err == nil || len(words) == 0:
		case words[0] != "#":
			s.declare(words[0])
		case len(words) > 2:
			s.declare(words[2])
		}
	}
	return read
}

func (s *Servers) declare(name string) {
	if len(s.declared) < maxNames && len(name) <= maxLabel {
		s.declared[name] = true
		// OpenMetrics declares a counter without _total.
		s.declared[strings.TrimSuffix(name, "_total")] = true
	}
}

func (s *Servers) add(set labels.Labels) {
	name := set.Get(model.MetricNameLabel)
	m, known := s.metrics[name]
	if !known {
		if len(s.metrics) >= maxNames || len(name) > maxLabel {
			return
		}
		m = &Metric{Labels: map[string][]string{}}
		s.metrics[strings.Clone(name)] = m
	}
	set.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		values, has := m.Labels[l.Name]
		key := [2]string{name, l.Name}
		switch {
		case s.full[key], slices.Contains(values, l.Value):
		case !has && len(m.Labels) >= 100:
		case len(values) >= maxValues || len(l.Value) > maxLabel:
			s.full[key] = true
			m.Labels[strings.Clone(l.Name)] = nil
		default:
			m.Labels[strings.Clone(l.Name)] = append(values, strings.Clone(l.Value))
		}
	})
}
