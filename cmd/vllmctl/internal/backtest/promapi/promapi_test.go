package promapi

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ask(t *testing.T, handler http.HandlerFunc, change func(*Settings)) ([]Series, *Client, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/prefix")
	require.NoError(t, err)
	s := Settings{HTTP: server.Client(), URL: *u, Sleep: func(context.Context, time.Duration) error { return nil }}
	if change != nil {
		change(&s)
	}
	c := New(s)
	series, err := c.Samples(t.Context(), `{job=~"a|"}`, time.Unix(1000, 0), time.Unix(1060, 0))
	return series, c, err
}

// all asks for every series.
func all(labels.Labels) bool { return true }

// A server that ignores the selector, or a proxy in front of it, sends what nobody asked for. None of it is kept, wherever its
// labels stand, and neither are samples outside of the period.
func TestWhatWasNotAskedForIsDropped(t *testing.T) {
	large := strings.Repeat("x", 17<<10)
	series, c, err := ask(t, reply(`{"status":"success","data":{"resultType":"matrix","result":[
		{"metric":{"__name__":"x","job":"b"},"values":[[1015,"1"]]},
		{"values":[[1015,"1"]],"metric":{"__name__":"y","job":"b"}},
		{"values":[[1015,"1"]]},
		{"metric":{"__name__":"`+large+`","job":"a"},"values":[[1015,"1"]]},
		{"values":[[900,"0"],[1015,"1"],[1060,"2"],[2000,"3"]],"metric":{"__name__":"z","job":"a"}}]}}`), nil)
	require.NoError(t, err)
	require.Len(t, series, 1)
	assert.Equal(t, "z", series[0].Labels.Get("__name__"))
	assert.Equal(t, []int64{1015000}, series[0].Times)
	assert.Equal(t, 1, c.Stats().Large)
	listed := reply(`{"status":"success","data":[{"__name__":"up","job":"a"},{"__name__":"down","job":"a"}]}`)
	server := httptest.NewServer(listed)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	found, err := New(Settings{HTTP: server.Client(), URL: *u}).Series(t.Context(), "up", time.Unix(0, 0), time.Unix(1, 0))
	require.NoError(t, err)
	assert.Equal(t, []labels.Labels{labels.FromStrings("__name__", "up", "job", "a")}, found)
}

func reply(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// The query is for the last millisecond of the period, so that Prometheus 2, which includes
// both ends of a range, and Prometheus 3, which does not include the first, give the same.
func TestSamplesAreThoseOfAHalfOpenPeriod(t *testing.T) {
	var asked url.Values
	var path string
	series, _, err := ask(t, func(w http.ResponseWriter, r *http.Request) {
		asked, path = r.URL.Query(), r.URL.Path
		reply(`{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"__name__":"a","job":"a"},"values":[[999.999,"1"],[1000,"2"],[1015.5,"3.25"],[1059.999,"+Inf"]]},
			{"metric":{"__name__":"b"},"values":[[1000,"NaN"],[1015.5,"-Inf"],[1059.999,"1e-300"]]},
			{"metric":{"__name__":"only before"},"values":[[999.999,"1"]]},
			{"metric":{"__name__":"h"},"histograms":[[1000,{"count":"1"}]]}
		]},"warnings":["a\u001b[31m store is away"],"infos":[]}`)(w, r)
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, "/prefix/api/v1/query", path)
	assert.Equal(t, `{job=~"a|"}[60000ms]`, asked.Get("query"))
	assert.Equal(t, "1059.999", asked.Get("time"))
	assert.Equal(t, "false", asked.Get("partial_response"))
	require.Len(t, series, 2)
	assert.Equal(t, labels.FromStrings("__name__", "a", "job", "a"), series[0].Labels)
	assert.Equal(t, []int64{1000000, 1015500, 1059999}, series[0].Times)
	assert.Equal(t, []float64{2, 3.25, math.Inf(1)}, series[0].Values)
	assert.True(t, math.IsNaN(series[1].Values[0]))
	assert.Equal(t, []float64{math.Inf(-1), 1e-300}, series[1].Values[1:])
	assert.Same(t, &series[0].Times[0], &series[1].Times[0], "equal times are shared")
}

func TestSamplesOutOfOrderAreSortedAndDoubleOnesDropped(t *testing.T) {
	series, _, err := ask(t, reply(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1030,"3"],[1000,"1"],[1030,"4"],[1015,"2"]]}]}}`), nil)
	require.NoError(t, err)
	require.Len(t, series, 1)
	assert.Equal(t, []int64{1000000, 1015000, 1030000}, series[0].Times)
	assert.Equal(t, []float64{1, 2, 3}, series[0].Values)
}

func TestWarningsOfTheServerAreKeptOnce(t *testing.T) {
	_, c, err := ask(t, reply(`{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":["x\u001b[2J","x\u001b[2J"]}`), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"x?[2J"}, c.Stats().Warnings)
	assert.Positive(t, c.Stats().Bytes)
}

func TestWhatIsNoAnswerOfTheAPIIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		kind Kind
		want string
	}{
		"a vector":           {`{"status":"success","data":{"resultType":"vector","result":[]}}`, Final, `"vector" instead of raw samples`},
		"a cut answer":       {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[10`, Busy, "not complete JSON"},
		"no JSON":            {`hello`, Busy, "not complete JSON"},
		"a list":             {`[]`, Busy, "not complete JSON"},
		"a value too few":    {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1000]]}]}}`, Busy, "not complete JSON"},
		"a value too many":   {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1000,"1","2"]]}]}}`, Busy, "not complete JSON"},
		"a word":             {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1000,"one"]]}]}}`, Busy, "not complete JSON"},
		"a bad status":       {`{"status":"error","errorType":"timeout","error":"query timed out"}`, TooMuch, "query timed out"},
		"no status":          {`{}`, Final, "rejects the query"},
		"a label not a text": {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":1},"values":[]}]}}`, Busy, "not complete JSON"},
	} {
		_, _, err := ask(t, reply(c.body), nil)
		require.ErrorContains(t, err, c.want, name)
		assert.Equal(t, c.kind, As(err).Kind, name)
	}
}

func TestAnAnswerIsBoundedInBytes(t *testing.T) {
	_, c, err := ask(t, reply(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"`+strings.Repeat("x", 1<<20)+`"},"values":[]}]}}`),
		func(s *Settings) { s.MaxAnswer = 1 << 16 })
	require.ErrorContains(t, err, "the answer is larger than 64 KiB; give a larger --max-answer")
	assert.Equal(t, TooMuch, As(err).Kind)
	assert.LessOrEqual(t, c.Stats().Bytes, int64(1<<16))
}

// A server that is away is asked again with growing pauses, for at most so long.
func TestABusyServerIsAskedAgainForAWhile(t *testing.T) {
	var pauses []time.Duration
	asked := 0
	_, c, err := ask(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, func(s *Settings) {
		s.Patience = 20 * time.Second
		s.Sleep = func(_ context.Context, d time.Duration) error {
			pauses = append(pauses, d)
			return nil
		}
	})
	require.ErrorContains(t, err, "the server fails (503)")
	total := time.Duration(0)
	for _, p := range pauses {
		total += p
		assert.LessOrEqual(t, p, 20*time.Second)
	}
	assert.Equal(t, 3*time.Second, pauses[0], "as the server asks for")
	assert.LessOrEqual(t, total, 20*time.Second)
	assert.LessOrEqual(t, asked, attempts)
	assert.Equal(t, asked, c.Stats().Queries)
	assert.Equal(t, asked-1, c.Stats().Retries)
}

// A wrong address is reported soon, and not after the patience with a server that restarts.
func TestAServerThatNeverAnsweredIsAskedAgainOnlyForAMoment(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	server.Close()
	waited := time.Duration(0)
	client := New(Settings{HTTP: server.Client(), URL: *u, Sleep: func(_ context.Context, d time.Duration) error {
		waited += d
		return nil
	}})
	_, err = client.Series(t.Context(), "x", time.Unix(0, 0), time.Unix(1, 0))
	require.ErrorContains(t, err, "cannot be reached")
	assert.Equal(t, firstAttempts, client.Stats().Queries)
	assert.Less(t, waited, 5*time.Second)
}

func TestTheKindOfAStatus(t *testing.T) {
	for _, c := range []struct {
		status          int
		errorType, text string
		kind            Kind
	}{
		{401, "", "", Final},
		{403, "", "", Final},
		{404, "", "", Final},
		{413, "", "", TooMuch},
		{422, "execution", "query processing would load too many samples into memory", TooMuch},
		{400, "", "the query hit the max number of series limit", TooMuch},
		{400, "bad_data", "parse error: exceeds", Final},
		{429, "", "", Busy},
		{500, "", "", Busy},
		{502, "", "", Busy},
		{503, "", "", Busy},
		{503, "timeout", "query timed out", TooMuch},
		{504, "", "", TooMuch},
	} {
		assert.Equal(t, c.kind, statusError(c.status, c.errorType, c.text).Kind, fmt.Sprint(c))
	}
}

func TestPrintableTextHasNoControlCharactersAndABound(t *testing.T) {
	got := Printable("a\x1b[31m\n\tb\u202e\x00" + strings.Repeat("é", 1000))
	assert.NotContains(t, got, "\x1b")
	assert.NotContains(t, got, "\n")
	assert.NotContains(t, got, "\u202e")
	assert.LessOrEqual(t, len(got), maxRemoteText+8)
}

// The reader finds in an answer what encoding/json finds in it, and never panics.
func FuzzMatrix(f *testing.F) {
	f.Add(`{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"2"],[3.5,"NaN"]]}]}`)
	f.Add(`{"result":[{"values":[[1e3,"2"]],"metric":{"a":"\u00e9\n"}}],"resultType":"matrix"}`)
	f.Add(`{"resultType":"matrix","result":[{"metric":{},"values":[[-1,"0x1p-2"]]},{"metric":{},"values":[[]]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		it := jsoniter.ParseString(jsoniter.ConfigCompatibleWithStandardLibrary, text)
		series, err := readMatrix(it, math.MinInt64, math.MaxInt64, all)
		if err != nil || it.Error != nil {
			return
		}
		for _, s := range series {
			require.Len(t, s.Values, len(s.Times))
			for i := 1; i < len(s.Times); i++ {
				require.Less(t, s.Times[i-1], s.Times[i])
			}
		}
		var want struct {
			Result []struct {
				Metric map[string]string
				Values [][]any
			}
		}
		if stdjson.Unmarshal([]byte(text), &want) != nil {
			return // It has something behind the object, or is more liberal.
		}
		n := 0
		for _, s := range want.Result {
			if len(s.Values) > 0 {
				n++
			}
		}
		require.LessOrEqual(t, len(series), max(n, len(want.Result)))
	})
}

func BenchmarkMatrix(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"resultType":"matrix","result":[`)
	for s := range 400 {
		if s > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"metric":{"__name__":"vllm:x","le":"%d"},"values":[`, s)
		for i := range 240 {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, `[%d.123,"%d"]`, 1700000000+15*i, s*i)
		}
		text.WriteString("]}")
	}
	text.WriteString("]}")
	body := text.String()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		it := jsoniter.Parse(jsoniter.ConfigCompatibleWithStandardLibrary, strings.NewReader(body), bufferSize)
		series, err := readMatrix(it, 0, math.MaxInt64, all)
		if err != nil || len(series) != 400 {
			b.Fatal(err, len(series))
		}
	}
}
