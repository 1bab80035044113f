package exposition

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
)

// samples are a body's samples by name and labels, as their lines write them
// except that bounds are numbers. NaN is kept as a word to compare equal.
type samples map[string]string

func (s samples) add(t *testing.T, name string, set []Label, value float64) {
	t.Helper()
	slices.SortFunc(set, compareLabels)
	key := name + renderLabels(set)
	_, twice := s[key]
	require.False(t, twice, key)
	s[key] = renderNumber(value)
}

func withLabel(set []Label, name string, value float64) []Label {
	return append(slices.Clone(set), Label{name, renderNumber(value)})
}

// flatten writes a snapshot back to samples.
func flatten(t *testing.T, s *Snapshot) samples {
	t.Helper()
	out := samples{}
	add := func(name string, set []Label, slot int) {
		if slot != NoSlot {
			out.add(t, name, slices.Clone(set), s.Values[slot])
		}
	}
	for _, f := range s.Layout.Families {
		created := f.Name + "_created"
		if f.Kind == KindCounter {
			created = strings.TrimSuffix(f.Name, "_total") + "_created"
		}
		for _, series := range f.Series {
			add(f.Name, series.Labels, series.Value)
			add(f.Name+"_sum", series.Labels, series.Sum)
			add(f.Name+"_count", series.Labels, series.Count)
			add(created, series.Labels, series.Created)
			for _, b := range series.Buckets {
				add(f.Name+"_bucket", withLabel(series.Labels, "le", b.UpperBound), b.Slot)
			}
			for _, q := range series.Quantiles {
				add(f.Name, withLabel(series.Labels, "quantile", q.Quantile), q.Slot)
			}
		}
	}
	return out
}

// flattenExpfmt does the same with what expfmt made of a body.
func flattenExpfmt(t *testing.T, families map[string]*dto.MetricFamily) samples {
	t.Helper()
	out := samples{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var set []Label
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" {
					set = append(set, Label{l.GetName(), l.GetValue()})
				}
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out.add(t, name, set, m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				out.add(t, name, set, m.GetGauge().GetValue())
			case dto.MetricType_UNTYPED:
				out.add(t, name, set, m.GetUntyped().GetValue())
			case dto.MetricType_SUMMARY:
				addTotals(t, out, name, set, m.GetSummary().SampleSum, m.GetSummary().SampleCount)
				for _, q := range m.GetSummary().GetQuantile() {
					out.add(t, name, withLabel(set, "quantile", q.GetQuantile()), q.GetValue())
				}
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				require.Zero(t, h.GetSampleCountFloat())
				addTotals(t, out, name, set, h.SampleSum, h.SampleCount)
				for _, b := range h.GetBucket() {
					out.add(t, name+"_bucket", withLabel(set, "le", b.GetUpperBound()), float64(b.GetCumulativeCount()))
				}
			default:
				t.Fatalf("family %s is a %s", name, f.GetType())
			}
		}
	}
	return out
}

func addTotals(t *testing.T, out samples, name string, set []Label, sum *float64, count *uint64) {
	t.Helper()
	if sum != nil {
		out.add(t, name+"_sum", set, *sum)
	}
	if count != nil {
		out.add(t, name+"_count", set, float64(*count))
	}
}

// expfmtKinds are the kinds by the names of families that have samples, without
// those that were folded into others.
func expfmtKinds(families map[string]*dto.MetricFamily) map[string]string {
	out := map[string]string{}
	for name, f := range families {
		base := strings.TrimSuffix(name, "_created")
		if base != name && (families[base] != nil || families[base+"_total"] != nil) {
			continue
		}
		out[name] = strings.ToLower(f.GetType().String())
	}
	return out
}

func kinds(s *Snapshot) map[string]string {
	out := map[string]string{}
	for _, f := range s.Layout.Families {
		if len(f.Series) > 0 {
			out[f.Name] = f.Kind.String()
		}
	}
	return out
}

func TestReadsWhatExpfmtReads(t *testing.T) {
	bodies := append(realBodies(t), ownBodies()[:2]...)
	compared := 0
	for _, b := range bodies {
		if b.dialect != DialectText {
			continue
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		text := slices.Clone(b.text)
		if !bytes.HasSuffix(text, []byte("\n")) {
			text = append(text, '\n')
		}
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if b.name == "captures/datadog-ray_vllm_metrics-v0.6-ray2.32.txt" {
			// expfmt refuses its second HELP lines; textparse does not.
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, b.name)
		compared++
		s := NewReader(NewMemory(0)).Read(b.text, b.dialect)
		require.Empty(t, s.Problems, b.name)
		require.Zero(t, s.Duplicates, b.name)
		require.Equal(t, expfmtKinds(families), kinds(s), b.name)
		require.Equal(t, flattenExpfmt(t, families), flatten(t, s), b.name)
		for _, f := range s.Layout.Families {
			if other := families[f.Name]; other != nil {
				require.Equal(t, other.GetHelp(), f.Help, f.Name)
			}
		}
	}
	require.GreaterOrEqual(t, compared, 9, "the own bodies at least")
}

// flattenTextparse reads all series of a body with Prometheus's own parsers, and
// the first TYPE line of each name.
func flattenTextparse(t *testing.T, b namedBody) (samples, map[string]string) {
	t.Helper()
	parser := textparse.NewPromParser(slices.Clone(b.text), nil, false)
	if b.dialect == DialectOpenMetrics {
		parser = textparse.NewOpenMetricsParser(b.text, nil)
	}
	out, types := samples{}, map[string]string{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return out, types
		}
		require.NoError(t, err, b.name)
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			if _, ok := types[string(name)]; !ok {
				types[string(name)] = strings.Replace(string(kind), "unknown", "untyped", 1)
			}
		case textparse.EntrySeries:
			_, _, value := parser.Series()
			var set labels.Labels
			parser.Labels(&set)
			var plain []Label
			set.Range(func(l labels.Label) {
				text := l.Value
				if l.Name == "le" || l.Name == "quantile" {
					f, err := strconv.ParseFloat(text, 64)
					require.NoError(t, err)
					text = renderNumber(f)
				}
				if l.Name != "__name__" && text != "" {
					plain = append(plain, Label{l.Name, text})
				}
			})
			out.add(t, set.Get("__name__"), plain, value)
		}
	}
}

func TestReadsWhatTextparseReads(t *testing.T) {
	for _, b := range append(realBodies(t), ownBodies()[:3]...) {
		want, types := flattenTextparse(t, b)
		s := NewReader(NewMemory(0)).Read(b.text, b.dialect)
		require.Empty(t, s.Problems, b.name)
		require.Zero(t, s.Duplicates, b.name)
		require.Equal(t, len(want), s.Samples, b.name)
		require.Equal(t, want, flatten(t, s), b.name)
		for _, f := range s.Layout.Families {
			name := f.Name
			if types[name] == "" && f.Kind == KindCounter {
				name = strings.TrimSuffix(name, "_total")
				if name == "go_memstats_alloc_bytes" {
					// client_golang writes a gauge of this name first.
					require.Equal(t, "gauge", types[name])
					continue
				}
			}
			require.Equal(t, types[name], f.Kind.String(), "%s: %s", b.name, f.Name)
		}
	}
}

// FuzzLineEqualsExpfmt reads one line with expfmt alone and compares.
func FuzzLineEqualsExpfmt(f *testing.F) {
	for _, tc := range readCases {
		for line := range strings.Lines(tc.body) {
			f.Add(strings.TrimSpace(line))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r") || strings.TrimRight(line, " \t") != line ||
			strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") || strings.Count(line, "=") > maxLabels ||
			len(line) > MaxName {
			t.Skip("several lines, blanks that expfmt minds, a comment, or longer than our limits, which expfmt does not have")
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(line + "\n"))
		s := NewReader(NewMemory(0)).Read([]byte(line), DialectText)
		if err != nil {
			require.Len(t, s.Problems, 1, "expfmt says %v", err)
			require.Empty(t, s.Layout.Families)
			return
		}
		require.Empty(t, s.Problems)
		require.Equal(t, flattenExpfmt(t, families), flattenLoosely(t, s))
	})
}

// flattenLoosely flattens untyped samples, whose bounds are words.
func flattenLoosely(t *testing.T, s *Snapshot) samples {
	t.Helper()
	out := samples{}
	for _, f := range s.Layout.Families {
		require.Equal(t, KindUntyped, f.Kind)
		for _, series := range f.Series {
			out.add(t, f.Name, slices.Clone(series.Labels), s.Values[series.Value])
		}
	}
	return out
}

// FuzzCommentEqualsTextparse reads what follows the word HELP of a line with textparse alone and
// compares.
func FuzzCommentEqualsTextparse(f *testing.F) {
	for _, line := range []string{
		"name text", "name", "name\ttext ", "name  a\\\\b\\nc\\x", `"a name" text`, `"a\"b\\c\nd" text`, `"open text`, "n\xe9me text", "name \xe9",
		"1name text", "name{a} text", `""text`, `name"quoted" text`, "é text",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if line == "" || strings.ContainsAny(line, "\n\r\x00") || isBlank(line[0]) {
			t.Skip("several lines, a NUL at the end, which textparse loses, or a blank, which is before the name")
		}
		name, text, good := textComment([]byte(line))
		parser := textparse.NewPromParser([]byte("# HELP "+line+"\n"), nil, false)
		entry, err := parser.Next()
		if err != nil || entry != textparse.EntryHelp {
			require.False(t, good && len(name) > 0, "textparse says %v", err)
			return
		}
		wantName, wantText := parser.Help()
		require.True(t, good)
		require.Equal(t, string(wantName), string(name))
		require.Equal(t, strings.TrimLeft(string(wantText), " \t"), string(text))
	})
}
