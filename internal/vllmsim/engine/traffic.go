package engine

// Traffic is recorded or generated traffic: what clients sent and when, never how fast
// it was served. It is read only, so that several runs can share one.
type Traffic struct {
	Name string
	// Arrivals are requests of an open loop, in the order of their times; Span is how long
	// they last, in seconds. After the span the traffic begins again.
	Arrivals []Arrival
	Span     float64
	// Conversations are those of a closed loop instead: a client sends the next turn when
	// it has the answer to the last one.
	Conversations []Conversation
	// BlockTokens is the number of tokens of a block of Prefix; 0 means that the traffic
	// has no blocks.
	BlockTokens int
}

// Arrival is one request of an open loop.
type Arrival struct {
	// At is in seconds since the beginning of the traffic.
	At             float64
	Prompt, Output int32
	Client         int32
	// Prefix are the blocks of the prompt in their order. Equal numbers at equal places
	// mean that everything up to the end of that block is equal.
	Prefix []BlockRun
}

// BlockRun is blocks with consecutive numbers, First and Last included.
type BlockRun struct{ First, Last int32 }

// Conversation is the turns of one client, in their order. Its block numbers are its own,
// except for the first Shared tokens, which are equal in all conversations.
type Conversation struct {
	Turns  []Turn
	Shared int32
}

// Turn is one request of a conversation.
type Turn struct {
	// Think is the pause between the last answer and this request, in seconds.
	Think          float64
	Prompt, Output int32
	Prefix         []BlockRun
}
