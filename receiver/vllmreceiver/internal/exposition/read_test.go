package exposition

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readCases are what bodies look like in the wild, or might, and what they mean.
var readCases = []struct {
	name    string
	dialect Dialect
	body    string
	want    []string
}{
	{
		name: "a counter, a gauge and their comments",
		body: "# HELP a_total Some help.\n# TYPE a_total counter\na_total{x=\"1\"} 3\n# TYPE b gauge\nb 4.5\n",
		want: []string{"counter a_total: Some help.", `  {x="1"} 3`, "gauge b", "  {} 4.5"},
	},
	{
		name: "a sample without a TYPE line is untyped",
		body: "# HELP a Help alone.\na 1\nb_bucket{le=\"1\"} 2\n",
		want: []string{"untyped a: Help alone.", "  {} 1", "untyped b_bucket", `  {le="1"} 2`},
	},
	{
		name: "escapes in help, label values and quoted names",
		body: "# HELP a One\\nTwo \\\\ back\na{p=\"C:\\\\m\\\"x\\\"\\nend\"} 1\n# TYPE \"q\\\"x\" gauge\n{\"q\\\"x\",\"l\\\\n\"=\"v\"} 2\n",
		want: []string{
			"untyped a: One\nTwo \\ back", `  {p="C:\\m\"x\"\nend"} 1`, `gauge q"x`, `  {l\n="v"} 2`,
		},
	},
	{
		name: "UTF-8 and quoted names, in braces and before them",
		body: "# TYPE \"vllm.tokens\" counter\n{\"vllm.tokens\",\"model.name\"=\"größe\"} 7\n# TYPE c gauge\nc{größe=\"no\"} 1\nc{\"größe\"=\"yes\"} 1\n",
		want: []string{
			"counter vllm.tokens", `  {model.name="größe"} 7`, "gauge c", `  {größe="yes"} 1`, "line 4: bad_labels",
		},
	},
	{
		name: "repeated HELP and TYPE lines: the first counts",
		body: "# HELP a First.\n# TYPE a gauge\na{x=\"1\"} 1\n# HELP a Second.\n# TYPE a counter\na{x=\"2\"} 2\n",
		want: []string{"gauge a: First.", `  {x="1"} 1`, `  {x="2"} 2`},
	},
	{
		name: "TYPE and HELP after the samples",
		body: "h_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n# TYPE h histogram\n# HELP h Late.\n",
		want: []string{"histogram h: Late.", "  {} <=+Inf: 2 sum 3 count 2"},
	},
	{
		name: "a family split in two",
		body: "# TYPE h histogram\nh_bucket{le=\"1\"} 1\n# TYPE g gauge\ng 5\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n",
		want: []string{"histogram h", "  {} <=1: 1 <=+Inf: 2 sum 3 count 2", "gauge g", "  {} 5"},
	},
	{
		name: "duplicate series: the first wins, in whatever order the labels are",
		body: "a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2\n# TYPE b gauge\nb 1\na{x=\"1\",y=\"2\",z=\"\"} 3\n",
		want: []string{"untyped a", `  {x="1",y="2"} 1`, "gauge b", "  {} 1", "duplicates: 2"},
	},
	{
		name: "bounds are compared as numbers",
		body: "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 9\nh_bucket{le=\"1e+00\"} 9\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 1\n",
		want: []string{"histogram h", "  {} <=1: 1 <=+Inf: 2 sum 1 count 2", "duplicates: 2"},
	},
	{
		name: "buckets in any order",
		body: "# TYPE h histogram\nh_sum 1\nh_bucket{le=\"+Inf\"} 4\nh_bucket{le=\"10.0\"} 3\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"10\"} 9\nh_count 4\n",
		want: []string{"histogram h", "  {} <=2: 1 <=10: 3 <=+Inf: 4 sum 1 count 4", "duplicates: 1"},
	},
	{
		name: "a missing last newline",
		body: "# TYPE a gauge\na 1\na{x=\"2\"} 25",
		want: []string{"gauge a", "  {} 1", `  {x="2"} 25`},
	},
	{
		name: "CRLF line ends",
		body: "# HELP a Help.\r\n# TYPE a gauge\r\na 1\r\n\r\na{x=\"2\"} 2 123\r\na{x=\"3\"} 3\r",
		want: []string{"gauge a: Help.", "  {} 1", `  {x="2"} 2`, `  {x="3"} 3`},
	},
	{
		name: "blanks wherever a text parser accepts them",
		body: "  # TYPE   a \t gauge \n\ta  {  x = \"1\" ,\ty=\"2\" , }\t 1  \n\n   \n#TYPE b gauge\nb 2\n#\n# \n# plain words\n",
		want: []string{"gauge a", `  {x="1",y="2"} 1`, "gauge b", "  {} 2"},
	},
	{
		name: "numbers of all styles",
		body: "a 3.0\nb 1e+06\nc 3.9024848896e+010\nd 1.7782615480413878e+09\ne NaN\nf +Inf\ng -Inf\nh -0\ni .5\nj 5.\nk 4.2434435281837845e+015\nl 5.882698982295764e-05\n",
		want: []string{
			"untyped a", "  {} 3", "untyped b", "  {} 1e+06", "untyped c", "  {} 3.9024848896e+10",
			"untyped d", "  {} 1.7782615480413878e+09", "untyped e", "  {} NaN", "untyped f", "  {} +Inf",
			"untyped g", "  {} -Inf", "untyped h", "  {} -0", "untyped i", "  {} 0.5", "untyped j", "  {} 5",
			"untyped k", "  {} 4.2434435281837845e+15", "untyped l", "  {} 5.882698982295764e-05",
		},
	},
	{
		name: "timestamps are checked and ignored",
		body: "a 1 1700000000000\nb 2 -5\nc 3 1.5\nd 4 5 6\ne 5 +7\n",
		want: []string{
			"untyped a", "  {} 1", "untyped b", "  {} 2", "untyped e", "  {} 5",
			"line 3: bad_timestamp", "line 4: bad_timestamp",
		},
	},
	{
		name: "bad lines are named and do no harm to others",
		body: "# TYPE a gauge\na 1\n{x=\"1\"} 2\n9a 3\na{x=\"1\" 4\na{x=1} 5\na{x=\"1\"\na six\na 0x1p-2\na 1_0\na\na{x=\"1\",x=\"2\"} 7\na{__name__=\"b\"} 8\na{x=\"\\q\"} 9\n{} 10\na{x=\"\xff\"} 11\n{\"\",x=\"1\"} 12\n\"\" 13\na{x=\"ok\"} 14\n",
		want: []string{
			"gauge a", "  {} 1", `  {x="ok"} 14`,
			"line 3: bad_name", "line 4: bad_name", "line 5: bad_labels", "line 6: bad_labels", "line 7: bad_labels",
			"line 8: bad_value", "line 9: bad_value", "line 10: bad_value", "line 11: bad_value",
			"line 12: bad_labels", "line 13: bad_labels", "line 14: bad_labels", "line 15: bad_name",
			"line 16: bad_labels", "line 17: bad_labels", "line 18: bad_name",
		},
	},
	{
		name: "a label set without a name is not read into the line before",
		body: "a{x=\"1\"} 1\n{y=\"2\"} 2\nb 3\n{} 4\n",
		want: []string{"untyped a", `  {x="1"} 1`, "untyped b", "  {} 3", "line 2: bad_name", "line 4: bad_name"},
	},
	{
		name: "bad comments",
		body: "# TYPE a surprise\na 1\n# TYPE 9 gauge\n# HELP b \xff\n# TYPE b counter\nb 2\n# TYPE\n# TYPE c\n# HELP d\n# TYPE \"e gauge\n# TYPE \"\" gauge\n",
		want: []string{
			"untyped a", "  {} 1", "counter b", "  {} 2",
			"line 1: bad_comment", "line 3: bad_comment", "line 4: bad_comment", "line 10: bad_comment",
			"line 11: bad_comment",
		},
	},
	{
		name: "a quoted name without end does not swallow the comments after it",
		body: "# TYPE \"a gauge\n# TYPE b gauge\n# TYPE \"c\" counter\nb 1\nc 2\n",
		want: []string{"gauge b", "  {} 1", "counter c", "  {} 2", "line 1: bad_comment"},
	},
	{
		name: "a body cut in a label",
		body: "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2",
		want: []string{"gauge a", `  {x="1"} 1`, "line 3: bad_labels"},
	},
	{
		name: "HTML instead of metrics",
		body: "<html>\n<body>Not Found</body>\n</html>\n",
		want: []string{"line 1: bad_name", "line 2: bad_name", "line 3: bad_name"},
	},
	{
		name: "an empty body",
		body: "",
	},
	{
		name: "a histogram called _total and its creation time",
		body: "# TYPE vllm:iteration_tokens_total histogram\nvllm:iteration_tokens_total_bucket{le=\"+Inf\"} 2\nvllm:iteration_tokens_total_sum 9\nvllm:iteration_tokens_total_count 2\n# TYPE vllm:iteration_tokens_total_created gauge\nvllm:iteration_tokens_total_created 1.79e+09\n",
		want: []string{"histogram vllm:iteration_tokens_total", "  {} <=+Inf: 2 sum 9 count 2 created 1.79e+09"},
	},
	{
		name: "gauges that end in _total stay gauges",
		body: "# TYPE vllm:healthy_pods_total gauge\nvllm:healthy_pods_total 3\n# TYPE vllm:healthy_pods counter\n",
		want: []string{"gauge vllm:healthy_pods_total", "  {} 3", "counter vllm:healthy_pods"},
	},
	{
		name: "creation times of counters, histograms and summaries fold by label set",
		body: "# TYPE c_total counter\nc_total{e=\"0\"} 1\nc_total{e=\"1\"} 2\n# TYPE c_created gauge\nc_created{e=\"1\"} 11\nc_created{e=\"0\"} 10\n# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 2\ns_count 3\n# TYPE s_created gauge\ns_created 12\n",
		want: []string{
			"counter c_total", `  {e="0"} 1 created 10`, `  {e="1"} 2 created 11`,
			"summary s", "  {} q0.5: 1 sum 2 count 3 created 12",
		},
	},
	{
		name: "a gauge called _created is a gauge where nothing was created",
		body: "# TYPE job_created gauge\njob_created 5\n# TYPE pod_created gauge\npod_created{pod=\"a\"} 6\n# TYPE pod counter\npod{ns=\"b\"} 1\n",
		want: []string{"gauge job_created", "  {} 5", "gauge pod_created", `  {pod="a"} 6`, "counter pod", `  {ns="b"} 1`},
	},
	{
		name: "a creation time whose series is missing",
		body: "# TYPE c_total counter\nc_total{e=\"0\"} 1\n# TYPE c_created gauge\nc_created{e=\"0\"} 10\nc_created{e=\"1\"} 11\nc_created{e=\"0\"} 12\n",
		want: []string{"counter c_total", `  {e="0"} 1 created 10`, "line 5: orphan_created", "duplicates: 1"},
	},
	{
		name: "creation times without a TYPE line of their own belong to their family",
		body: "# TYPE c counter\nc_created 9\n# TYPE d counter\nd_total{x=\"1\"} 1\nd_created{x=\"2\"} 9\n# TYPE g gauge\ng_created 9\n",
		want: []string{
			"counter c", "counter d_total", `  {x="1"} 1`, "gauge g", "untyped g_created", "  {} 9",
			"line 2: orphan_created", "line 5: orphan_created",
		},
	},
	{
		name: "samples that their TYPE has no place for",
		body: "# TYPE h histogram\nh 1\nh_bucket 2\nh_bucket{le=\"wide\"} 3\nh_bucket{le=\"NaN\"} 3\nh_bucket{le=\"\"} 3\nh_bucket{le=\"+Inf\"} 4\n# TYPE s summary\ns 5\ns{quantile=\"x\"} 6\ns_count 7\n",
		want: []string{
			"histogram h", "  {} <=+Inf: 4", "summary s", "  {} count 7",
			"line 2: wrong_type", "line 3: wrong_type", "line 4: wrong_type", "line 5: wrong_type", "line 6: wrong_type",
			"line 9: wrong_type", "line 10: wrong_type",
		},
	},
	{
		name: "le and quantile are labels like others where the kind has no use for them",
		body: "# TYPE g gauge\ng{le=\"1\",a=\"x\",quantile=\"2\"} 1\n# TYPE h histogram\nh_bucket{le=\"+Inf\",quantile=\"q\"} 2\nh_sum{quantile=\"q\"} 3\n# TYPE s summary\ns{quantile=\"0.5\",le=\"l\"} 4\n",
		want: []string{
			"gauge g", `  {a="x",le="1",quantile="2"} 1`, "histogram h", `  {quantile="q"} <=+Inf: 2 sum 3`,
			"summary s", `  {le="l"} q0.5: 4`,
		},
	},
	{
		name: "bare families",
		body: "# HELP a_total Nothing yet.\n# TYPE a_total counter\n# HELP b Help alone.\n# TYPE h histogram\n",
		want: []string{"counter a_total: Nothing yet.", "histogram h"},
	},
	{
		name: "an empty label value means no label",
		body: "a{x=\"\",y=\"1\"} 1\na{y=\"1\"} 2\n",
		want: []string{"untyped a", `  {y="1"} 1`, "duplicates: 1"},
	},
	{
		name: "an OpenMetrics body served as text",
		body: "# HELP vllm:prompt_tokens Tokens.\n# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{engine=\"0\"} 512\nvllm:prompt_tokens_created{engine=\"0\"} 9\n# TYPE vllm:lora info\nvllm:lora_info{a=\"b\"} 1\n# TYPE x unknown\nx 2\n# EOF\n",
		want: []string{
			"counter vllm:prompt_tokens_total: Tokens.", `  {engine="0"} 512 created 9`,
			"info vllm:lora_info", `  {a="b"} 1`, "untyped x", "  {} 2",
		},
	},
	{
		name: "samples that lost the colon of their TYPE line",
		body: "# TYPE vllm:prompt_tokens counter\nvllm_prompt_tokens_total 5\nvllm_prompt_tokens_created 9\n# TYPE vllm:waiting gauge\nvllm_waiting 3\n# TYPE vllm:ttft histogram\nvllm_ttft_bucket{le=\"+Inf\"} 2\nvllm_ttft_sum 1\nvllm_ttft_count 2\n",
		want: []string{
			"counter vllm:prompt_tokens_total", "  {} 5 created 9", "gauge vllm:waiting", "  {} 3",
			"histogram vllm:ttft", "  {} <=+Inf: 2 sum 1 count 2",
		},
	},
	{
		name: "names with and without a colon side by side are two families",
		body: "# TYPE vllm:x gauge\nvllm:x 1\n# TYPE vllm_x gauge\nvllm_x 2\n",
		want: []string{"gauge vllm:x", "  {} 1", "gauge vllm_x", "  {} 2"},
	},
	{
		name: "Ray's twins: a counter and a gauge alias",
		body: "# TYPE ray_vllm_prompt_tokens gauge\nray_vllm_prompt_tokens 5\n# TYPE ray_vllm_prompt_tokens_total counter\nray_vllm_prompt_tokens_total 5\n",
		want: []string{"gauge ray_vllm_prompt_tokens", "  {} 5", "counter ray_vllm_prompt_tokens_total", "  {} 5"},
	},
	{
		name:    "the OpenMetrics kinds",
		dialect: DialectOpenMetrics,
		body:    "# TYPE c counter\n# UNIT c_seconds seconds\n# HELP c Says \\\"hi\\\".\nc_total 3\nc_created 1.5\n# TYPE i info\ni_info{v=\"1\"} 1\n# TYPE s stateset\ns{s=\"on\"} 1\n# TYPE g_bytes gaugehistogram\n# UNIT g_bytes bytes\ng_bytes_bucket{le=\"1.0\"} 1\ng_bytes_bucket{le=\"+Inf\"} 2\ng_bytes_gsum 3\ng_bytes_gcount 2\n# TYPE u unknown\nu 1\n# EOF\n",
		want: []string{
			`counter c_total: Says "hi".`, "  {} 3 created 1.5", "info i_info", `  {v="1"} 1`, "stateset s", `  {s="on"} 1`,
			"gaugehistogram g_bytes in bytes", "  {} <=1: 1 <=+Inf: 2 sum 3 count 2", "untyped u", "  {} 1",
		},
	},
	{
		name:    "bare OpenMetrics families are named as their samples would be",
		dialect: DialectOpenMetrics,
		body:    "# TYPE c counter\n# TYPE i info\n# TYPE g gauge\n# EOF\n",
		want:    []string{"counter c_total", "info i_info", "gauge g"},
	},
	{
		name:    "exemplars are kept",
		dialect: DialectOpenMetrics,
		body:    "# TYPE h histogram\nh_bucket{le=\"1\"} 4 # {trace_id=\"abc\"} 0.67\nh_bucket{le=\"+Inf\"} 5 1700000000.5 # {} 3 1700000000.25\nh_sum 6\nh_count 5\n# EOF\n",
		want: []string{
			"histogram h", "  {} <=1: 4 <=+Inf: 5 sum 6 count 5",
			`exemplar of 4: {trace_id="abc"} 0.67`, "exemplar of 5: {} 3 at 1700000000250",
		},
	},
	{
		name:    "OpenMetrics is stricter about blanks and timestamps",
		dialect: DialectOpenMetrics,
		body:    "# TYPE a gauge\na 1 1.5\na{x=\"1\"}  2\na{x=\"2\"} 3 abc\na{x=\"3\"} 4 # {bad} 1\na{x=\"4\",x=\"5\"} 5\na{x=\"6\"} 0x1p3\n a 7\n9 8\n{x=\"1\"} 9\na{x=\"7\"} 10\na 1  2\na 1 #x\na\t1\n# TYPE b sorrow\n# UNIT c parsecs\n# EOF\n",
		want: []string{
			"gauge a", "  {} 1", `  {x="7"} 10`,
			"line 3: bad_value", "line 4: bad_timestamp", "line 5: bad_timestamp", "line 6: bad_labels", "line 7: bad_value",
			"line 8: bad_name", "line 9: bad_name", "line 10: bad_name", "line 12: bad_timestamp", "line 13: bad_timestamp", "line 14: bad_value",
			"line 15: bad_comment", "line 16: bad_comment",
		},
	},
	{
		name:    "a cut OpenMetrics body is delivered and reported",
		dialect: DialectOpenMetrics,
		body:    "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2",
		want:    []string{"gauge a", `  {x="1"} 1`, `  {x="2"} 2`, "line 3: missing_eof"},
	},
	{
		name:    "an empty OpenMetrics body lacks its end",
		dialect: DialectOpenMetrics,
		want:    []string{"line 1: missing_eof"},
	},
	{
		name:    "client_golang's gauge x and counter x_total are one OpenMetrics name",
		dialect: DialectOpenMetrics,
		body:    "# HELP m Gauge.\n# TYPE m gauge\nm 1\n# HELP m Counter.\n# TYPE m counter\nm_total 2\n# EOF\n",
		want:    []string{"gauge m: Gauge.", "  {} 1", "counter m_total: Counter.", "  {} 2"},
	},
}

func TestRead(t *testing.T) {
	for _, tc := range readCases {
		t.Run(tc.name, func(t *testing.T) {
			s := NewReader(NewMemory(0)).Read([]byte(tc.body), tc.dialect)
			require.Equal(t, strings.Join(tc.want, "\n"), strings.Join(render(s), "\n"))
		})
	}
}

// A family is where the body names it first, whether in a comment or by a sample.
func TestFamiliesStandInTheOrderOfTheirFirstMention(t *testing.T) {
	body := "# TYPE late gauge\n# TYPE c counter\nx 1\nc_total 2\nlate 3\nb_total 4\n# TYPE b counter\ny 5\n# TYPE bare gauge\n"
	s := NewReader(NewMemory(0)).Read([]byte(body), DialectText)
	var names []string
	for _, f := range s.Layout.Families {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"late", "c_total", "x", "b_total", "y", "bare"}, names)
}

// The result of a Read must outlive the body's buffer, which fetching reuses.
func TestResultDoesNotReferToTheBody(t *testing.T) {
	for _, tc := range readCases {
		body := []byte(tc.body)
		s := NewReader(NewMemory(100)).Read(body, tc.dialect)
		before := render(s)
		for i := range body {
			body[i] = 'z'
		}
		require.Equal(t, before, render(s), tc.name)
	}
}
