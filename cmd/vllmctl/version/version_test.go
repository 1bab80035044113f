package version

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheLinkersVersionComesBeforeTheModules(t *testing.T) {
	assert.Equal(t, "0.2.0", of("0.2.0", "(devel)"))
	assert.Equal(t, "0.2.0", of("0.2.0", "v0.3.1"))
	assert.Equal(t, "0.3.1", of("", "v0.3.1"), "go install ...@v0.3.1")
	assert.Equal(t, "0.2.1-0.20261126050000-0123456789ab", of("", "v0.2.1-0.20261126050000-0123456789ab"), "go install ...@main")
	assert.Equal(t, "devel", of("", "(devel)"), "go run in a checkout")
	assert.Equal(t, "devel", of("", ""), "a program without modules")
}

func TestATestIsNoRelease(t *testing.T) {
	assert.NotEmpty(t, Of())
}
