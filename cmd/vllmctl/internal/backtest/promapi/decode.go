package promapi

import (
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/labels"
)

// Series is a series with its samples, in the order of their times in milliseconds. Series
// of one answer that have the same times share them.
type Series struct {
	Labels labels.Labels
	Times  []int64
	Values []float64
}

// json reads answers. It is the library that Prometheus itself writes them with, and four
// to eight times as fast as encoding/json here: most of the work is numbers.
var json = jsoniter.ConfigCompatibleWithStandardLibrary

// bufferSize is that of the reader of an answer.
const bufferSize = 64 << 10

// answer reads an answer of the API. Of the envelope it needs only the fields below.
func (c *Client) answer(response *http.Response, body io.Reader, data func(*jsoniter.Iterator) error) error {
	success := response.StatusCode == http.StatusOK
	if media := response.Header.Get("Content-Type"); !strings.Contains(media, "json") {
		if !success {
			return statusError(response.StatusCode, "", plainText(body))
		}
		return newError(Final, nil,
			"the answer is %s and not JSON: this is not the API of Prometheus; give the address before /api/v1, and look for a login page or a proxy in front of it",
			Printable(media))
	}
	it := jsoniter.Parse(json, body, bufferSize)
	var status, errorType, message string
	var problem error
	whole := it.ReadObjectCB(func(it *jsoniter.Iterator, field string) bool {
		switch field {
		case "status":
			status = it.ReadString()
		case "errorType":
			errorType = it.ReadString()
		case "error":
			message = it.ReadString()
		case "warnings":
			for it.ReadArray() {
				c.warn(it.ReadString())
			}
		case "data":
			if success {
				problem = data(it)
				return problem == nil && it.Error == nil
			}
			it.Skip()
		default:
			it.Skip()
		}
		return it.Error == nil
	})
	switch {
	case problem != nil:
		return problem
	case !success:
		return statusError(response.StatusCode, errorType, message)
	case !whole || it.Error != nil && !errors.Is(it.Error, io.EOF):
		return newError(Busy, it.Error, "the answer is not complete JSON")
	case status != "success":
		return statusError(http.StatusUnprocessableEntity, errorType, message)
	}
	return nil
}

func (c *Client) warn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.warnings) < maxWarnings {
		c.warnings[Printable(text)] = true
	}
}

// plainText is the start of an answer that is not JSON; empty for a page.
func plainText(body io.Reader) string {
	text, err := io.ReadAll(io.LimitReader(body, maxRemoteText))
	if err != nil || strings.HasPrefix(strings.TrimSpace(string(text)), "<") {
		return ""
	}
	return string(text)
}

// readLabels reads an object of strings. Of a name that is there twice the last one counts.
func readLabels(it *jsoniter.Iterator, builder *labels.ScratchBuilder) {
	builder.Reset()
	it.ReadObjectCB(func(it *jsoniter.Iterator, name string) bool {
		builder.Add(name, it.ReadString())
		return it.Error == nil
	})
	builder.Sort()
}

// readMatrix reads the field data of a query whose result is a matrix, and drops series and
// samples that were not asked for.
func readMatrix(it *jsoniter.Iterator, from, to int64, asked func(labels.Labels) bool) ([]Series, error) {
	var out []Series
	kind := ""
	it.ReadObjectCB(func(it *jsoniter.Iterator, field string) bool {
		switch field {
		case "resultType":
			kind = it.ReadString()
		case "result":
			m := matrix{from: from, to: to, asked: asked, builder: labels.NewScratchBuilder(16)}
			for it.ReadArray() {
				m.series(it)
				if it.Error != nil {
					return false
				}
			}
			out = m.out
		default:
			it.Skip()
		}
		return it.Error == nil
	})
	if it.Error == nil && kind != "matrix" {
		return nil, newError(Final, nil, "the server answers with a %q instead of raw samples; it does not support range selectors in instant queries", Printable(kind))
	}
	return out, nil
}

type matrix struct {
	out     []Series
	from    int64
	to      int64
	asked   func(labels.Labels) bool
	builder labels.ScratchBuilder
	times   []int64
	values  []float64
}

// series reads one series.
func (m *matrix) series(it *jsoniter.Iterator) {
	m.times, m.values = m.times[:0], m.values[:0]
	var known labels.Labels
	sorted, named, dropped := true, false, false
	it.ReadObjectCB(func(it *jsoniter.Iterator, field string) bool {
		switch field {
		case "metric":
			readLabels(it, &m.builder)
			known = m.builder.Labels()
			named, dropped = true, !m.asked(known)
		case "values":
			if dropped {
				it.Skip()
				break
			}
			for it.ReadArray() {
				t, v, ok := sample(it)
				if !ok {
					return false
				}
				if t < m.from || t >= m.to {
					continue
				}
				if n := len(m.times); n > 0 && t <= m.times[n-1] {
					sorted = false
				}
				m.times, m.values = append(m.times, t), append(m.values, v)
			}
		default:
			it.Skip() // Native histograms, which vLLM does not have.
		}
		return it.Error == nil
	})
	if it.Error != nil || !named || dropped || len(m.times) == 0 {
		return
	}
	if !sorted {
		m.sort()
	}
	one := Series{Labels: known, Values: slices.Clone(m.values)}
	if n := len(m.out); n > 0 && slices.Equal(m.out[n-1].Times, m.times) {
		one.Times = m.out[n-1].Times
	} else {
		one.Times = slices.Clone(m.times)
	}
	m.out = append(m.out, one)
}

// sample reads one pair of a time in seconds and a value as a string.
func sample(it *jsoniter.Iterator) (t int64, v float64, ok bool) {
	if !it.ReadArray() {
		it.ReportError("sample", "it has no time")
		return 0, 0, false
	}
	seconds := it.ReadFloat64()
	if !it.ReadArray() {
		it.ReportError("sample", "it has no value")
		return 0, 0, false
	}
	text := it.ReadStringAsSlice()
	// The text is not kept: one copy for each sample would cost more than the number.
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64) //nolint:gosec // As the line above says.
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		it.ReportError("sample", "its value is not a number")
		return 0, 0, false
	}
	if it.ReadArray() {
		it.ReportError("sample", "it has more than a time and a value")
		return 0, 0, false
	}
	if it.Error != nil || math.Abs(seconds) > 1e11 {
		return 0, 0, false
	}
	return int64(math.Round(seconds * 1000)), v, true
}

// sort brings the samples into the order of their times and keeps the first of each time.
func (m *matrix) sort() {
	order := make([]int, len(m.times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(m.times[a] - m.times[b]) })
	times, values := make([]int64, 0, len(order)), make([]float64, 0, len(order))
	for _, i := range order {
		if n := len(times); n > 0 && times[n-1] == m.times[i] {
			continue
		}
		times, values = append(times, m.times[i]), append(values, m.values[i])
	}
	m.times, m.values = times, values
}
