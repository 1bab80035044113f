package story

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryShippedStoryCanBePlayed(t *testing.T) {
	b, err := Shipped()
	require.NoError(t, err)
	used := map[string]bool{}
	for i := range b.Stories {
		s := &b.Stories[i]
		assert.NotEmpty(t, s.About, s.Name)
		p, err := b.Play(s.Name)
		require.NoError(t, err, s.Name)
		assert.Equal(t, s.Server, p.Server.Name)
		used[s.Server] = true
		require.Len(t, p.Phases, 1+len(s.Phases), s.Name)
		assert.Equal(t, Steady, p.Phases[0].Name)
		for j := range p.Phases {
			assert.Positive(t, p.Phases[j].Prompt.Mean, s.Name)
			assert.Positive(t, p.Phases[j].Output.Most, s.Name)
			if j > 0 {
				assert.True(t, strings.HasPrefix(p.Phases[j].Name, s.Name+"/"), p.Phases[j].Name)
			}
		}
	}
	for _, s := range b.Servers {
		assert.True(t, used[s.Name], "no story plays on server %q", s.Name)
	}
}

// small is a book with a story of one phase.
func small(server, phase string) string {
	return `
steady: {for: 1m, load: 0.3}
prompt: {mean: 100, sigma: 0.5, most: 1000}
output: {mean: 10, sigma: 0, most: 500}
servers: [` + server + `]
stories: [{name: one, about: it, server: plain, phases: [` + phase + `]}]
`
}

func TestAPhaseTakesFromTheBookWhatItDoesNotSay(t *testing.T) {
	b, err := Read([]byte(small("{name: plain, steady: {for: 2m, clients: 3, prompt: {mean: 7}}}",
		"{name: a, for: 1m, rate: 2}, {name: b, for: 1m, prompt: {mean: 900}, output: {mean: 20, sigma: 1, most: 40}}")))
	require.NoError(t, err)
	p, err := b.Play("one")
	require.NoError(t, err)
	require.Len(t, p.Phases, 3)
	assert.Equal(t, Phase{Name: "steady", For: 2 * time.Minute, Clients: 3, Prompt: Lengths{7, 0, 1000}, Output: Lengths{10, 0, 500}}, p.Phases[0])
	assert.Equal(t, Phase{Name: "one/a", For: time.Minute, Rate: 2, Prompt: Lengths{100, 0.5, 1000}, Output: Lengths{10, 0, 500}}, p.Phases[1])
	// A phase can have shorter lengths than the book.
	assert.Equal(t, Phase{Name: "one/b", For: time.Minute, Prompt: Lengths{900, 0, 1000}, Output: Lengths{20, 1, 40}}, p.Phases[2])
	// The book is not changed by a play.
	assert.Equal(t, "a", b.Stories[0].Phases[0].Name)
}

func TestWrongBooksAreRefused(t *testing.T) {
	plain, ok := "{name: plain}", "{name: a, for: 1m, load: 0.3}"
	_, err := Read([]byte(small(plain, ok)))
	require.NoError(t, err)
	for name, c := range map[string]struct{ book, says string }{
		"nothing":           {"", "empty"},
		"two documents":     {small(plain, ok) + "---\n" + small(plain, ok), "one YAML document"},
		"unknown key":       {small(plain, "{name: a, for: 1m, laod: 0.3}"), "laod"},
		"a key twice":       {small(plain, "{name: a, for: 1m, for: 2m}"), "already defined"},
		"unknown server":    {small("{name: other}", ok), `story "one": there is no server "plain"`},
		"a server twice":    {small(plain+", "+plain, ok), `server "plain"`},
		"a story twice":     {strings.Replace(small(plain, ok), "stories: [", "stories: [{name: one, server: plain, phases: ["+ok+"]}, ", 1), `story "one": want a name that no other story has`},
		"no phases":         {small(plain, ""), `story "one" has no phases`},
		"no time":           {small(plain, "{name: a, load: 0.3}"), `story "one", phase "a": it lasts 0s`},
		"two ways":          {small(plain, "{name: a, for: 1m, load: 0.3, clients: 2}"), "come in 2 ways"},
		"three ways":        {small(plain, "{name: a, for: 1m, rate: 0.3, at_once: 2, every: 1s}"), "come in 3 ways"},
		"steady":            {strings.Replace(small(plain, ok), "load: 0.3", "load: 0.3, rate: 1", 1), "steady: it lasts 1m0s, and its requests come in 2 ways"},
		"a server's steady": {small("{name: plain, steady: {load: 0.3}}", ok), `server "plain", steady: it lasts 0s`},
		"less than nothing": {small(plain, "{name: a, for: 1m, load: -0.3}"), "load is -0.3"},
		"no number":         {small(plain, "{name: a, for: 1m, rate: .nan}"), "rate is NaN"},
		"a share above 1":   {small(plain, "{name: a, for: 1m, abort: 1.5}"), "abort is 1.5"},
		"only an end":       {small(plain, "{name: a, for: 1m, to: 1}"), "load at the beginning"},
		"quiet clients":     {small(plain, "{name: a, for: 1m, quiet: 5s, clients: 1}"), "quiet"},
		"quiet to the end":  {small(plain, "{name: a, for: 1m, quiet: 60s, load: 1}"), "quiet"},
		"half a prefix":     {small(plain, "{name: a, for: 1m, prefix: {tokens: 5}}"), "prefix"},
		"too long":          {small(plain, "{name: a, for: 1m, prompt: {mean: 1001}}"), "prompt: the mean"},
		"no such adapters":  {small("{name: plain, adapters: 1}", "{name: a, for: 1m, adapters: 2}"), `2 adapters, and server "plain" has 1`},
		"unknown fault":     {small(plain, "{name: a, for: 1m, fault: {do: explode}}"), `unknown fault "explode"`},
		"unknown process":   {small(plain, "{name: a, for: 1m, fault: {do: stop, of: wroker}}"), `unknown process "wroker"`},
		"slow at full pace": {small(plain, "{name: a, for: 1m, fault: {do: slow, share: 1}}"), "share between 0 and 1"},
		"slow without":      {small(plain, "{name: a, for: 1m, fault: {do: slow}}"), "share between 0 and 1"},
		"no neighbours":     {small(plain, "{name: a, for: 1m, fault: {do: neighbour}}"), "count"},
		"a name with /":     {strings.Replace(small(plain, ok), "name: one", "name: a/b", 1), `story "a/b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(c.book))
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestStoriesOfOneServerArePlayedInOneGo(t *testing.T) {
	b := &Book{
		Steady:  Phase{For: time.Minute, Load: 0.3},
		Servers: []Server{{Name: "plain"}, {Name: "other", Steady: &Phase{For: time.Hour}}},
		Stories: []Story{
			{Name: "a", Server: "plain", Phases: []Phase{{Name: "x"}, {Name: "y"}}},
			{Name: "b", Server: "plain", Phases: []Phase{{Name: "x"}}},
			{Name: "c", Server: "other", Phases: []Phase{{Name: "z"}}},
			{Name: "d", Server: "plain", Processor: map[string]any{"window": "1m"}, Phases: []Phase{{Name: "x"}}},
		},
	}
	names := func(p *Play) (out []string) {
		for i := range p.Phases {
			out = append(out, p.Phases[i].Name)
		}
		return out
	}
	p, err := b.Play("b", "a")
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "a"}, p.Stories)
	assert.Equal(t, []string{"steady", "b/x", "a/x", "a/y"}, names(p))
	assert.Equal(t, "plain", p.Server.Name)
	p, err = b.Play("c")
	require.NoError(t, err)
	assert.Equal(t, time.Hour, p.Phases[0].For, "the server has a steady phase of its own")
	p, err = b.Play("d")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"window": "1m"}, p.Processor)
	for _, c := range []struct {
		names []string
		says  string
	}{
		{nil, "no story is named"},
		{[]string{""}, `no story ""`},
		{[]string{"a", "e"}, `no story "e"`},
		{[]string{"a", "c"}, "another server"},
		{[]string{"a", "d"}, "other settings"},
		{[]string{"d", "a"}, "other settings"},
	} {
		_, err := b.Play(c.names...)
		assert.ErrorContains(t, err, c.says, "%v", c.names)
	}
}
