// Package story has the stories that a real vLLM and the simulator both play: the flags of a
// server, what clients send phase by phase, and what goes wrong. A story is data.
package story

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed stories.yaml
var shipped []byte

// Book is the whole of stories.yaml.
type Book struct {
	// Steady is the phase before each story in which nothing happens. It is long enough for
	// the processor to learn what is usual.
	Steady Phase `yaml:"steady"`
	// Prompt and Output are the lengths of phases that have none.
	Prompt  Lengths  `yaml:"prompt"`
	Output  Lengths  `yaml:"output"`
	Servers []Server `yaml:"servers"`
	Stories []Story  `yaml:"stories"`
}

// Server is a configuration of vLLM that several stories may share.
type Server struct {
	Name string `yaml:"name"`
	// Flags are added to the command line of every server, Env to its environment.
	Flags []string `yaml:"flags"`
	Env   []string `yaml:"env"`
	// Adapters is the number of LoRA adapters that are made and named after the last flag.
	Adapters int `yaml:"adapters"`
	// Steady replaces the book's steady phase, for servers whose stories need another one.
	Steady *Phase `yaml:"steady"`
	// Simulated says what the simulator is to be, where that differs from the default.
	Simulated Simulated `yaml:"simulated"`
}

// Simulated are the settings of the simulated server that stand for the flags.
type Simulated struct {
	// KVTokens is the size of the KV cache in tokens, BlockSize that of a block.
	KVTokens  int `yaml:"kv_tokens"`
	BlockSize int `yaml:"block_size"`
	// Engines is the number of data parallel ranks, APIServers that of front ends.
	Engines    int `yaml:"engines"`
	APIServers int `yaml:"api_servers"`
	// Draft is the number of drafted tokens, LoRA whether adapters are served.
	Draft int  `yaml:"draft"`
	LoRA  bool `yaml:"lora"`
	// Not is the reason why the simulator does not play the stories of this server.
	Not string `yaml:"not"`
}

// Story is one thing that happens, after the steady phase of its server.
type Story struct {
	Name   string `yaml:"name"`
	About  string `yaml:"about"`
	Server string `yaml:"server"`
	// Processor are settings of the processor; none but in stories of a setting.
	Processor map[string]any `yaml:"processor"`
	Phases    []Phase        `yaml:"phases"`
	// Say are the conditions and causes of which a report of harm must have one, Never those
	// that are wrong.
	Say   []string `yaml:"say"`
	Never []string `yaml:"never"`
	// NotSimulated is the reason why the simulator does not play it.
	NotSimulated string `yaml:"not_simulated"`
}

// Phase is a time in which clients behave in one way.
type Phase struct {
	Name string        `yaml:"name" json:"name"`
	For  time.Duration `yaml:"for" json:"for"`
	// Load is the arrival rate as a share of what the server can serve of the book's lengths;
	// To is the share at the end, where it changes. Rate is in requests per second instead.
	// Arrivals are a Poisson process.
	Load float64 `yaml:"load" json:"load,omitempty"`
	To   float64 `yaml:"to" json:"to,omitempty"`
	Rate float64 `yaml:"rate" json:"rate,omitempty"`
	// At once is a number of requests at the beginning of the phase, Every the distance of
	// requests that come one by one.
	AtOnce int           `yaml:"at_once" json:"at_once,omitempty"`
	Every  time.Duration `yaml:"every" json:"every,omitempty"`
	// Quiet is how long nothing is sent at the beginning.
	Quiet time.Duration `yaml:"quiet" json:"quiet,omitempty"`
	// Clients is the number of clients of a closed loop, which send their next request when
	// they have the answer to the last one.
	Clients int `yaml:"clients" json:"clients,omitempty"`

	Prompt Lengths `yaml:"prompt" json:"prompt"`
	Output Lengths `yaml:"output" json:"output"`
	Prefix Prefix  `yaml:"prefix" json:"prefix"`
	// Abort is the share of clients that leave after 0.2 to 2 s; Timeout is when every client
	// gives up, Retries how often it tries again then, and after an error.
	Abort   float64       `yaml:"abort" json:"abort,omitempty"`
	Timeout time.Duration `yaml:"timeout" json:"timeout,omitempty"`
	Retries int           `yaml:"retries" json:"retries,omitempty"`
	// Choices is the parameter n, Bad the share of requests with an invalid parameter.
	Choices int     `yaml:"choices" json:"choices,omitempty"`
	Bad     float64 `yaml:"bad" json:"bad,omitempty"`
	// Adapters is the number of LoRA adapters that are asked for in turn, Grammar the share of
	// requests with a JSON schema of their own, which the server has to compile.
	Adapters int     `yaml:"adapters" json:"adapters,omitempty"`
	Grammar  float64 `yaml:"grammar" json:"grammar,omitempty"`
	// Greedy switches the randomness of answers off.
	Greedy bool `yaml:"greedy" json:"greedy,omitempty"`
	// KeepAlive lets clients use their connections again.
	KeepAlive bool `yaml:"keep_alive" json:"keep_alive,omitempty"`

	Fault *Fault `yaml:"fault" json:"fault,omitempty"`
}

// Lengths is a lognormal distribution of lengths in tokens; with Sigma 0 all are equal to Mean.
type Lengths struct {
	Mean  float64 `yaml:"mean" json:"mean"`
	Sigma float64 `yaml:"sigma" json:"sigma"`
	Most  int     `yaml:"most" json:"most"`
}

// Prefix makes the first Tokens of a prompt one of Of beginnings, all equally often.
type Prefix struct {
	Tokens int `yaml:"tokens" json:"tokens,omitempty"`
	Of     int `yaml:"of" json:"of,omitempty"`
}

// Fault lasts as long as its phase.
type Fault struct {
	// Do is what happens: see Faults.
	Do string `yaml:"do" json:"do"`
	// Of is the process: worker, core or api, with the number of its rank where there are
	// several (core1); empty for the whole server.
	Of string `yaml:"of" json:"of,omitempty"`
	// Share is the share of the time in which a slowed process runs.
	Share float64 `yaml:"share" json:"share,omitempty"`
	// Count is the number of noisy neighbours.
	Count int `yaml:"count" json:"count,omitempty"`
}

// Faults are what a fault can do.
var Faults = map[string]string{
	"stop":      "the process gets SIGSTOP at the beginning and SIGCONT at the end",
	"slow":      "the process runs only a share of the time",
	"one-core":  "the whole server has one processor core",
	"neighbour": "other programs use the processor cores",
	"kill":      "the process is killed; the server is started again at the end, where it ended",
	"restart":   "the server is stopped in order and started again at once",
	"sleep":     "the server is put to sleep, and woken at the end",
}

// Shipped returns the project's stories.
func Shipped() (*Book, error) { return Read(shipped) }

// Read reads and checks a book. The error names the story and what is wrong with it.
func Read(raw []byte) (*Book, error) {
	b := &Book{}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(b); errors.Is(err, io.EOF) {
		return nil, errors.New("the book of stories is empty")
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&Book{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("a book of stories is one YAML document, and this one has another after it")
	}
	b.complete(&b.Steady)
	for i := range b.Servers {
		if s := b.Servers[i].Steady; s != nil {
			b.complete(s)
		}
	}
	for i := range b.Stories {
		for j := range b.Stories[i].Phases {
			b.complete(&b.Stories[i].Phases[j])
		}
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
}

// complete gives a phase the lengths of the book.
func (b *Book) complete(p *Phase) {
	if p.Prompt.Mean == 0 {
		p.Prompt = b.Prompt
	}
	if p.Output.Mean == 0 {
		p.Output = b.Output
	}
	p.Prompt.Most, p.Output.Most = cmp.Or(p.Prompt.Most, b.Prompt.Most), cmp.Or(p.Output.Most, b.Output.Most)
}

func (b *Book) server(name string) *Server {
	for i := range b.Servers {
		if b.Servers[i].Name == name {
			return &b.Servers[i]
		}
	}
	return nil
}

// Play is what is played in one go: a steady phase, and then one story or several that
// share the server. Names of phases begin with that of their story.
type Play struct {
	Stories   []string       `json:"stories"`
	Server    Server         `json:"server"`
	Processor map[string]any `json:"processor,omitempty"`
	Phases    []Phase        `json:"phases"`
}

// Play returns the play of stories by their names, in this order.
func (b *Book) Play(names ...string) (*Play, error) {
	p := &Play{Stories: names}
	for i, name := range names {
		at := slices.IndexFunc(b.Stories, func(s Story) bool { return s.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no story %q", name)
		}
		s := &b.Stories[at]
		server := b.server(s.Server)
		if i == 0 {
			p.Server, p.Processor = *server, s.Processor
			steady := b.Steady
			if server.Steady != nil {
				steady = *server.Steady
			}
			steady.Name = Steady
			p.Phases = append(p.Phases, steady)
		} else if p.Server.Name != s.Server || len(s.Processor) > 0 || len(p.Processor) > 0 {
			return nil, fmt.Errorf("%q has another server or other settings than %q; play it alone", name, names[0])
		}
		for _, phase := range s.Phases {
			phase.Name = name + "/" + phase.Name
			p.Phases = append(p.Phases, phase)
		}
	}
	if len(p.Phases) == 0 {
		return nil, errors.New("no story is named")
	}
	return p, nil
}

// Steady is the name of the phase that says what is usual.
const Steady = "steady"
