package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachDashboardIsAssignedToTheType(t *testing.T) {
	var out strings.Builder
	require.NoError(t, write(&out, fstest.MapFS{
		"suffixed/a.json": {Data: []byte("{\"uid\": \"a\"}\n")},
		"dotted/b.json":   {Data: []byte(`{"uid": "b"}`)},
		"provider.yaml":   {Data: []byte("x: y")},
	}))
	assert.Contains(t, out.String(), ": Board = {\"uid\": \"a\"};\n")
	assert.Contains(t, out.String(), ": Board = {\"uid\": \"b\"};\n")
	assert.Equal(t, 2, strings.Count(out.String(), ": Board = "))

	require.ErrorContains(t, write(&out, fstest.MapFS{"a.json": {Data: []byte("{")}}), "a.json")
	require.ErrorContains(t, write(&out, fstest.MapFS{}), "no dashboard")
}
