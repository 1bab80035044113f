// Package status has what all commands of vllmctl end with: a number that a script can test.
package status

import "errors"

// Status is the exit status of vllmctl. Scripts may rely on the numbers.
type Status int

// The exit statuses.
const (
	// OK means that what was asked for was done, and no problem was found.
	OK Status = 0
	// Problem means that a problem was found.
	Problem Status = 1
	// Failed means that it could not be found out: wrong arguments, a file that cannot be
	// read, or a server that should be asked and does not answer.
	Failed Status = 2
	// Warning means, with --strict, that warnings were found and no problem.
	Warning Status = 3
)

// Meaning is what the numbers have in common, for the documentation.
const Meaning = "Scripts can rely on these numbers, also with `--json`. 2 includes wrong arguments, unreadable files and interrupts."

// Row says when a command ends with each status; "–" where it never does.
type Row struct {
	Command string
	When    [4]string
}

// Table has a row for each command. A test of the program holds it to what they do.
var Table = []Row{
	{"backtest", [4]string{
		"The history was judged. With `--incidents`: none missed, and no false alarm.", "With `--incidents`: one missed, or a false alarm.",
		"No history of vLLM servers, or a rule failed. After a failed rule, the report is still written.", "–",
	}},
	{"check", [4]string{"No problem.", "A problem, for example an unreachable server.", "No configuration to check.", "With `--strict`: only warnings."}},
	{"lint", [4]string{"No error.", "An error in a file.", "A file or an address cannot be read.", "With `--strict`: only warnings."}},
	{"top", [4]string{
		"With `--once`: no action needed.", "With `--once`: severity 2 or more, or an unreachable server.",
		"With `--once`: no server can be read or judged, or too many to show.", "–",
	}},
}

// Error is an error with the exit status that it means. A command that has printed what it
// found returns one without a cause.
type Error struct {
	Status Status
	// Cause is nil if everything has been printed already.
	Cause error
}

// Found returns the result of a command that has printed what it found; nil if its status
// is OK.
func Found(s Status) error {
	if s == OK {
		return nil
	}
	return &Error{Status: s}
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return ""
	}
	return e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

// Of returns the exit status of an error, and whether it still has to be printed. An error
// without a status means Failed.
func Of(err error) (s Status, unprinted bool) {
	if err == nil {
		return OK, false
	}
	var known *Error
	if errors.As(err, &known) {
		return known.Status, known.Cause != nil
	}
	return Failed, true
}
