package stages

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// join joins the extensions that answer questions about servers.
func (s *Diagnosis) join(host component.Host) {
	for _, extension := range host.GetExtensions() {
		if registry, is := extension.(fleet.Registry); is {
			tell, leave := registry.Join(s.log.id, s)
			s.log.tell = append(s.log.tell, tell)
			s.leave = append(s.leave, leave)
		}
	}
}

// numbers are the signals of an engine that are shown, with where what is usual goes; NumNumbers for nowhere.
var numbers = []struct {
	signal       signal.Signal
	value, usual fleet.Number
}{
	{signal.Running, fleet.Running, fleet.NumNumbers},
	{signal.Waiting, fleet.Waiting, fleet.NumNumbers},
	{signal.KVUtilization, fleet.KV, fleet.NumNumbers},
	{signal.TimeToFirstToken, fleet.FirstToken, fleet.FirstTokenUsual},
	{signal.InterTokenLatency, fleet.TokenGap, fleet.TokenGapUsual},
}

// Snapshot implements fleet.Source.
func (s *Diagnosis) Snapshot() *fleet.Snapshot {
	known := &fleet.Snapshot{Window: s.settings.Window}
	s.each(func(server *Server) {
		state, has := Of[*diagnosisState](server)
		if !has {
			return
		}
		for p := range state.engines.Present() {
			known.Engines = append(known.Engines, s.log.engine(server, &p))
		}
		if promises, has := Of[*objectivesState](server); has {
			promises.trackers.Budgets(promises.plan, server.Window.Time(), func(model, objective string, remaining, burn float64) {
				known.Budgets = append(known.Budgets, fleet.Budget{
					Objective: objective, Server: nameOf(server.Attributes), Model: Cut(model), Remaining: remaining, Burn: burn,
				})
			})
		}
	})
	s.eachPool(func(p diagnose.Present, engines int, _ func() diagnose.Transition) {
		one := fleet.Pool{
			Key: s.log.key("", p.Attributes), Name: diagnose.PoolName(p.Attributes), Diagnosis: diagnosisOf(&p.Verdict, p.Detail, p.Since),
			Attributes: map[string]string{}, Engines: engines,
		}
		for _, a := range p.Attributes {
			one.Attributes[a.Name] = Cut(a.Value)
		}
		known.Pools = append(known.Pools, one)
	})
	return known
}

// Detail implements fleet.Source.
func (s *Diagnosis) Detail(key string) (found *fleet.Detail) {
	s.each(func(server *Server) {
		state, has := Of[*diagnosisState](server)
		if found != nil || !has {
			return
		}
		for p := range state.engines.Present() {
			if s.log.key(server.Key, p.Attributes) == key {
				found = s.detail(state.engines.Explain(&p), server.Attributes)
				return
			}
		}
	})
	if found != nil {
		return found
	}
	s.eachPool(func(p diagnose.Present, _ int, explain func() diagnose.Transition) {
		if found == nil && s.log.key("", p.Attributes) == key {
			found = s.detail(explain(), pcommon.NewMap())
		}
	})
	return found
}

func (s *Diagnosis) eachPool(visit func(p diagnose.Present, engines int, explain func() diagnose.Transition)) {
	s.judging.Lock()
	defer s.judging.Unlock()
	if s.pools != nil {
		s.pools.Present(visit)
	}
}

func (s *Diagnosis) detail(t diagnose.Transition, resource pcommon.Map) *fleet.Detail {
	m := s.log.message(&t, resource)
	return &fleet.Detail{Words: m.Words, Board: m.Board, Evidence: m.Signals}
}

func (l *changeLog) engine(server *Server, p *diagnose.Present) fleet.Engine {
	named := func(names ...string) string { return Named(server.Attributes, names...) }
	group := &input.Group{Attributes: p.Attributes}
	e := fleet.Engine{
		Key: l.key(server.Key, p.Attributes), Resource: keyOf("", server.Key, nil),
		Server: nameOf(server.Attributes), Address: strings.TrimSuffix(net.JoinHostPort(named("server.address"), named("server.port")), ":"),
		Cluster: named("k8s.cluster.name"), Namespace: named("k8s.namespace.name"), Pod: named("k8s.pod.name"), Node: named("k8s.node.name"),
		Model: Cut(group.Value("model_name")), Engine: Cut(group.Value("engine")), Version: Cut(server.Window.Reported()),
		Diagnosis: diagnosisOf(&p.Verdict, p.Detail, p.Since), Failure: Cut(p.Failure),
		New: p.Verdict.Because == diagnose.JustSeen, Read: p.Read, Resumed: p.Resumed, At: time.Unix(0, p.At), Arrived: server.Arrived, Interval: time.Duration(p.Interval),
	}
	for _, n := range numbers {
		value, usual := p.Signals(n.signal)
		e.Numbers[n.value] = value
		if n.usual < fleet.NumNumbers {
			e.Numbers[n.usual] = usual
		}
	}
	return e
}

// key is that of an engine of a server or, without one, of a pool.
func (l *changeLog) key(server string, attributes []input.Attribute) string {
	return keyOf(l.id, server, attributes)
}

func keyOf(processor, server string, attributes []input.Attribute) string {
	text := make([]byte, 0, 256)
	text = strconv.AppendQuote(strconv.AppendQuote(text, processor), server)
	for _, a := range attributes {
		text = strconv.AppendQuote(strconv.AppendQuote(text, a.Name), a.Value)
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:8])
}

func diagnosisOf(v *diagnose.Verdict, detail string, since int64) fleet.Diagnosis {
	d := fleet.Diagnosis{Condition: v.Condition.String(), Severity: v.Severity, Since: time.Unix(0, since)}
	if v.Explained {
		d.Cause, d.Detail = v.Primary.String(), detail
	}
	return d
}

// event is a change as its line of the log says it.
func (l *changeLog) event(t *diagnose.Transition, m *message.Message, server string, resource pcommon.Map) fleet.Event {
	e := fleet.Event{
		Key: l.key(server, t.Attributes), At: time.Unix(0, t.At), From: t.From.Condition.String(), Sentence: m.Sentence,
		Diagnosis: diagnosisOf(&t.To, t.Details[min(t.To.Primary, diagnose.NumCauses-1)], t.Since),
	}
	if e.Subject = diagnose.PoolName(t.Attributes); !t.Pool {
		e.Subject = nameOf(resource)
		if group := (&input.Group{Attributes: t.Attributes}); group.Value("engine") != "" {
			e.Subject += ", engine " + Cut(group.Value("engine"))
		}
	}
	return e
}
