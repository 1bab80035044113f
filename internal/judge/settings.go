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
	first, _, _ := strings.Cut(string(e), "; ")
	above, unknown, is := strings.Cut(first, "unknown keys: ")
	if is {
		unknown, _, _ = strings.Cut(unknown, ", ")
	} else {
		above, _, _ = strings.Cut(first, " ")
	}
	return strings.FieldsFunc(above+"."+unknown, func(r rune) bool { return strings.ContainsRune(":.[] ", r) })
}

var element = regexp.MustCompile(`::(\d+)`)

// plain is an error of a configuration in one line, without what is about the decoder.
func plain(err error) settingError {
	var out []string
	within := ""
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if key, _, is := strings.Cut(line, " decoding failed due to"); is {
			key = strings.Trim(key, "'")
			within = max(within, key) // The outer ones have none.
			continue
		}
		if line == "" || strings.HasSuffix(line, "error(s):") {
			continue
		}
		if quoted, isQuoted := strings.CutPrefix(line, "'"); isQuoted {
			// The decoder quotes the key.
			if key, what, is := strings.Cut(quoted, "' "); is {
				line = strings.Replace(what, "has invalid keys: ", "unknown keys: ", 1)
				if key != "" && !strings.HasSuffix(key, ".Config") { // The name of a type.
					line = key + ": " + line
				}
			}
		}
		// A collector writes objectives::0, and a scenario file objectives[0].
		out = append(out, element.ReplaceAllString(line, "[$1]"))
	}
	if within != "" {
		within += ": "
	}
	return settingError(within + strings.Join(out, "; "))
}
