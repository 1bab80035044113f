package story

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachStoryIsInOneGroupThatCanBePlayed(t *testing.T) {
	t.Parallel()
	book, err := Shipped()
	require.NoError(t, err)
	var want, got []string
	for i := range book.Stories {
		want = append(want, book.Stories[i].Name)
	}
	total := time.Duration(0)
	for _, names := range book.Groups(50 * time.Minute) {
		play, err := book.Play(names...)
		require.NoError(t, err)
		lasts := time.Duration(0)
		for _, phase := range play.Phases {
			lasts += phase.For
		}
		assert.LessOrEqual(t, lasts, 65*time.Minute, "%v", names)
		got, total = append(got, names...), total+lasts
	}
	assert.ElementsMatch(t, want, got)
	assert.Less(t, total, 4*time.Hour+40*time.Minute, "with the starts of the servers it is to end within five hours")
}

func TestStoriesWithSettingsOfTheProcessorArePlayedAlone(t *testing.T) {
	t.Parallel()
	phases := []Phase{{For: 10 * time.Minute}}
	book := &Book{
		Servers: []Server{{Name: "a"}, {Name: "b"}, {Name: "unused"}},
		Stories: []Story{
			{Name: "1", Server: "a", Phases: phases},
			{Name: "2", Server: "b", Phases: phases},
			{Name: "3", Server: "a", Phases: phases, Processor: map[string]any{"window": "30s"}},
			{Name: "4", Server: "a", Phases: phases},
			{Name: "5", Server: "a", Phases: phases},
		},
	}
	assert.Equal(t, [][]string{{"3"}, {"1", "4", "5"}, {"2"}}, book.Groups(30*time.Minute))
	assert.Equal(t, [][]string{{"3"}, {"1"}, {"4", "5"}, {"2"}}, book.Groups(15*time.Minute))
}

func TestThePartsHaveEachGroupOnce(t *testing.T) {
	t.Parallel()
	book, err := Shipped()
	require.NoError(t, err)
	groups := book.Groups(50 * time.Minute)
	var got [][]string
	for part := 1; part <= 3; part++ {
		some, err := book.Part(groups, part, 3)
		require.NoError(t, err)
		lasts := time.Duration(0)
		for _, names := range some {
			play, err := book.Play(names...)
			require.NoError(t, err)
			for _, phase := range play.Phases {
				lasts += phase.For
			}
		}
		assert.Less(t, lasts, 95*time.Minute, "a nightly job has two hours, with the starts of the servers")
		got = append(got, some...)
	}
	assert.Len(t, got, len(groups))
	for _, names := range groups {
		assert.True(t, slices.ContainsFunc(got, func(g []string) bool { return slices.Equal(g, names) }), "%v", names)
	}
	_, err = book.Part([][]string{{"no such story"}}, 1, 1)
	require.Error(t, err)
}

func TestOnlyALoadNeedsTheCapacity(t *testing.T) {
	t.Parallel()
	book, err := Shipped()
	require.NoError(t, err)
	for name, want := range map[string]bool{"ci": false, "steady": true, "lone-prompts": true} {
		play, err := book.Play(name)
		require.NoError(t, err)
		assert.Equal(t, want, play.Loaded(), name)
	}
}
