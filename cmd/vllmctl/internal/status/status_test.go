package status_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

func TestTheStatusOfAnError(t *testing.T) {
	cause := errors.New("no such file")
	for name, c := range map[string]struct {
		err       error
		want      status.Status
		unprinted bool
	}{
		"none":                    {nil, status.OK, false},
		"any other":               {cause, status.Failed, true},
		"printed":                 {status.Found(status.Problem), status.Problem, false},
		"with a cause":            {&status.Error{Status: status.Warning, Cause: cause}, status.Warning, true},
		"wrapped by another":      {fmt.Errorf("lint: %w", &status.Error{Status: status.Problem, Cause: cause}), status.Problem, true},
		"wrapped and printed yet": {fmt.Errorf("lint: %w", status.Found(status.Warning)), status.Warning, false},
	} {
		got, unprinted := status.Of(c.err)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.unprinted, unprinted, name)
	}
	require.NoError(t, status.Found(status.OK))
	require.ErrorIs(t, &status.Error{Status: status.Failed, Cause: cause}, cause)
	assert.Equal(t, "no such file", (&status.Error{Status: status.Failed, Cause: cause}).Error())
	assert.Empty(t, status.Found(status.Problem).Error())
}
