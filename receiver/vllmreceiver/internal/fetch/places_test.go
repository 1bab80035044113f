package fetch

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Large answers wait for a place until their deadline, and small ones never wait. A
// place is free again after success and after every error.
func TestLargeAnswersTakePlaces(t *testing.T) {
	places := NewPlaces(1)
	settings := func(s *Settings) { s.Places, s.Limit, s.Timeout = places, 3<<20, time.Minute }
	// Long enough for an answer on a busy machine: it is the place that is waited for.
	short := func(s *Settings) { s.Places, s.Limit, s.Timeout = places, 3<<20, 2*time.Second }
	sized := func(n int) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("a 1\n", n/4))
		})
	}
	large, small, beyond := sized(2<<20), sized(1<<10), sized(4<<20)
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2500000")
		_, _ = io.WriteString(w, strings.Repeat("a 1\n", 2<<18))
	})
	var body bytes.Buffer
	first, err := client(t, large, settings).Metrics(t.Context(), &body, false)
	require.NoError(t, err)
	assert.Equal(t, 2<<20, body.Len())

	_, err = client(t, large, short).Metrics(t.Context(), new(bytes.Buffer), false)
	require.Error(t, err)
	assert.Equal(t, OutcomeTooLarge, AsError(err).Outcome)
	assert.Contains(t, err.Error(), "limits::body_size")
	answer, err := client(t, small, settings).Metrics(t.Context(), new(bytes.Buffer), false)
	require.NoError(t, err)
	answer.Release()

	first.Release()
	for _, address := range []string{beyond, cut} {
		_, err = client(t, address, settings).Metrics(t.Context(), new(bytes.Buffer), false)
		require.Error(t, err)
		assert.Empty(t, places)
	}
}
