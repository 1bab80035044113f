package main

// Rival is a method that others would take, with what it said of the stories that it has played.
type Rival struct {
	// Name is for the page.
	Name    string
	Records []Record
}
