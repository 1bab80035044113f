package live

import (
	"strings"
)

// maxNotes is for how many servers and engines the sentences of the log are kept.
const maxNotes = MaxRows

// maxSentence is the longest sentence that is kept, in bytes.
const maxSentence = 1000

// notes are sentences that only the log of the components has: why a scrape failed, what the
// processor says of an engine beyond the catalogue, and which known defects a server has.
type notes struct {
	// failures are by the target.
	failures map[string]string
	// sentences are by the server, the model and the engine.
	sentences map[string]sentence
	// defects are by the version.
	defects map[string]Defects
}

// sentence is what the processor says of an engine in a condition.
type sentence struct{ condition, cause, text string }

// Defects are the names of known defects of vLLM's metrics that matter for a server.
type Defects struct {
	// Sure are there, and Possible only with some models, requests or deployments.
	Sure, Possible []string
}

func newNotes() notes {
	return notes{failures: map[string]string{}, sentences: map[string]sentence{}, defects: map[string]Defects{}}
}

// Note takes a line of the log.
func (s *State) Note(line *Line) { s.notes.take(line) }

func (n *notes) take(line *Line) {
	text := func(field string) string { value, _ := line.fields[field].(string); return value }
	_, failed := line.fields["outcome"]
	switch {
	case failed && text("target") != "":
		// "Scraping failed: why", "Scraping still fails: why" and others.
		if _, why, found := strings.Cut(line.Message, ": "); found {
			put(n.failures, text("target"), printable(why, maxSentence))
		}
	case text("condition") != "":
		if said, is := strings.CutPrefix(line.Message, "diagnosis: "); is {
			key := text("service.instance.id") + "\x00" + text("model_name") + "\x00" + text("engine")
			put(n.sentences, key, sentence{text("condition"), text("cause"), printable(strings.ReplaceAll(said, "`", ""), maxSentence)})
		}
	case line.fields["defects"] != nil:
		put(n.defects, text("version"), Defects{texts(line.fields["defects"]), texts(line.fields["possible_defects"])})
	}
}

// put sets an entry, and does nothing where there are too many.
func put[V any](in map[string]V, key string, value V) {
	if _, has := in[key]; has || len(in) < maxNotes {
		in[key] = value
	}
}

// texts are the elements of a field that is a list of texts.
func texts(field any) (all []string) {
	list, _ := field.([]any)
	for _, element := range list {
		if text, is := element.(string); is {
			all = append(all, text)
		}
	}
	return all
}

// forget forgets what is known of a server.
func (n *notes) forget(instance string) {
	delete(n.failures, instance)
	for key := range n.sentences {
		if strings.HasPrefix(key, instance+"\x00") {
			delete(n.sentences, key)
		}
	}
}
