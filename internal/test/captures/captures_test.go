package captures

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFilesAreTheModelServersBodies(t *testing.T) {
	files := Files(t)
	assert.IsIncreasing(t, files)
	var generated int
	for _, file := range files {
		assert.Equal(t, ".txt", filepath.Ext(file))
		folder, err := filepath.Rel(Dir(t), filepath.Dir(file))
		assert.NoError(t, err)
		assert.Contains(t, []string{".", "generated"}, folder)
		if folder == "generated" {
			generated++
		}
	}
	assert.Positive(t, generated)
	assert.Greater(t, len(files), generated)
}
