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

// Meanings are the sentences of the documentation.
var Meanings = []struct {
	Status  Status
	Meaning string
}{
	{OK, "No problem was found. There may be warnings."},
	{Problem, "At least one problem was found."},
	{Failed, "It could not be found out: the arguments are wrong, a file cannot be read, or the command was interrupted."},
	{Warning, "Only with `--strict`: there are warnings and no problem."},
}

// Row says when a command ends with a status.
type Row struct {
	Command string
	Status  Status
	When    string
}

// Table has a row for each status of each command. A test of the program holds it to what they do.
var Table = []Row{
	{"backtest", OK, "The history was judged. With `--incidents`, none was missed and there was no false alarm."},
	{"backtest", Problem, "With `--incidents`: one was missed, by the diagnosis or by the rules, or there was a false alarm."},
	{"backtest", Failed, "The history cannot be read or has no vLLM server, or one of the `--rules` cannot be evaluated. In the last case the report is written."},
	{"check", OK, "There is no problem."},
	{"check", Problem, "There is a problem, as a server that cannot be read."},
	{"check", Failed, "The arguments are wrong, or the configuration cannot be read."},
	{"check", Warning, "With `--strict`: there are warnings and no problem."},
	{"lint", OK, "No problem was found."},
	{"lint", Problem, "There is an error in what was checked."},
	{"lint", Failed, "The arguments are wrong, or a file or an address cannot be read."},
	{"lint", Warning, "With `--strict`: there are warnings and no error."},
	{"top", OK, "With `--once`: nothing that was judged asks for action."},
	{"top", Problem, "With `--once`: an engine or a pool has severity 2 or more, or a server cannot be read."},
	{"top", Failed, "With `--once`: no server can be read, none can be judged, or there are too many to show."},
}

// Error is an error with the exit status that it means. A command that has printed what it
// found returns one without a cause.
type Error struct {
	Status Status
	// Cause is nil if everything has been printed already.
	Cause error
}

// With returns an error with an exit status.
func With(s Status, cause error) *Error { return &Error{Status: s, Cause: cause} }

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
