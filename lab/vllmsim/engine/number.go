package engine

// The number of a request, its ID, says where the request comes from, so that it is equal in
// all runs that have the request. All numbers are below 2^53, which JSON readers can hold.
//
//	bits 0-37   position in its stream
//	bits 38-41  layer of the open loop, see arrivals
//	bits 42-43  kind: open loop, a caller's, closed loop, part of a request
//	bits 44-46  attempt: 0 is the first
//	bits 47-52  for users of this package: the process, see ProcessIDs
//
// Of a closed loop bits 28-41 are the client, 12-27 its conversation and 0-11 the turn.
const (
	layerShift   = 38
	callersFirst = 1 << 42
	clientsFirst = 2 << 42
	firstMember  = 3 << 42
	attemptShift = 44

	clientShift, conversationShift = 28, 12

	// maxClients, maxConversations and maxTurns are what fits into a number.
	maxClients       = 1 << (42 - clientShift)
	maxConversations = 1 << (clientShift - conversationShift)
	maxTurns         = 1 << conversationShift
	// maxRetries is the greatest number of further attempts.
	maxRetries = 7
)

// ProcessIDs is above all IDs of one Server. The requests of a process that was started n
// times again can have the IDs from n x ProcessIDs; MaxRestarts is the greatest such n.
const (
	ProcessIDs  = 1 << 47
	MaxRestarts = 63
)

// attempt returns which attempt a number is of; again returns the number of the next one.
func attempt(id int) int { return id >> attemptShift & maxRetries }
func again(id int) int   { return id + 1<<attemptShift }
