// Package bad has types whose JSON cannot be described.
package bad

// Bad lacks a comment.
type Bad struct {
	Inner
	Silent int `json:"silent"`
}

// Inner is inside.
type Inner struct{}
