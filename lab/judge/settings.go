package judge

import (
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// configure returns the processor's configuration with the settings of a story. What a
// collector refuses is an error here, in one line.
func configure(settings map[string]any) (*vllmprocessor.Config, error) {
	config := vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
	err := confmap.NewFromStringMap(settings).Unmarshal(config)
	if err == nil {
		// A collector validates what a configuration consists of as well, such as objectives.
		err = confmap.Validate(config)
	}
	if err != nil {
		return nil, plain(err)
	}
	return config, nil
}

// settingError is an error: what is wrong with settings. It begins with the keys of the first
// setting that is wrong, where these are known.
type settingError string

func (e settingError) Error() string { return "processor: " + string(e) }

// keys are those of the first setting that is wrong. The last can be a word of the sentence.
func (e settingError) keys() []string {
	above, _, _ := strings.Cut(string(e), " ")
	return strings.FieldsFunc(above, func(r rune) bool { return strings.ContainsRune(":.[]", r) })
}

var element = regexp.MustCompile(`::(\d+)`)

// plain is an error of a configuration in one line. A collector writes objectives::0, and a scenario
// file objectives[0].
func plain(err error) settingError {
	return settingError(element.ReplaceAllString(strings.ReplaceAll(err.Error(), "\n", "; "), "[$1]"))
}
