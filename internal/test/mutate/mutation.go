package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"math/rand/v2"
	"slices"
	"strings"
)

// A mutation replaces one operator of a file by another.
type mutation struct {
	file         string // relative to the module's root
	line, column int
	offset       int
	old, new     token.Token
}

func (m mutation) String() string {
	return fmt.Sprintf("%s:%d:%d %s -> %s", m.file, m.line, m.column, m.old, m.new)
}

// replacements is what gremlins does for each of its kinds of mutation.
var replacements = map[string]map[token.Token]token.Token{
	"ARITHMETIC_BASE": {
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	},
	"CONDITIONALS_BOUNDARY": {
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	},
	"CONDITIONALS_NEGATION": {
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
	},
	"INCREMENT_DECREMENT": {token.INC: token.DEC, token.DEC: token.INC},
	"INVERT_ASSIGNMENTS": {
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
	},
	"INVERT_BITWISE": {
		token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND,
		token.AND_NOT: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
	},
	"INVERT_BWASSIGN": {
		token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.XOR_ASSIGN: token.AND_ASSIGN,
		token.AND_NOT_ASSIGN: token.AND_ASSIGN, token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
	},
	"INVERT_LOGICAL":   {token.LAND: token.LOR, token.LOR: token.LAND},
	"INVERT_LOOPCTRL":  {token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK},
	"INVERT_NEGATIVES": {token.SUB: token.ADD},
}

// listed is a mutation as gremlins lists it.
type listed struct {
	Type   string `json:"type"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// mutationsOf finds the operators that gremlins lists in the source of a file. Two
// kinds that do the same to one operator are one mutation.
func mutationsOf(file string, source []byte, list []listed) ([]mutation, error) {
	tokens := tokensOf(source)
	found := map[mutation]bool{}
	for _, l := range list {
		at, ok := tokens[[2]int{l.Line, l.Column}]
		old := at.token
		if !ok {
			return nil, fmt.Errorf("gremlins lists %s at %s:%d:%d, where no token begins", l.Type, file, l.Line, l.Column)
		}
		if l.Type == "INVERT_ASSIGNMENTS" && old == token.REM_ASSIGN {
			continue // gremlins replaces it by itself
		}
		replacement, ok := replacements[l.Type][old]
		if !ok {
			return nil, fmt.Errorf("gremlins lists %s at %s:%d:%d, where %q stands", l.Type, file, l.Line, l.Column, old)
		}
		found[mutation{file, l.Line, l.Column, at.offset, old, replacement}] = true
	}
	mutations := make([]mutation, 0, len(found))
	for m := range found {
		mutations = append(mutations, m)
	}
	slices.SortFunc(mutations, compare)
	return mutations, nil
}

type place struct {
	token  token.Token
	offset int
}

// tokensOf returns the tokens of a source by their line and column.
func tokensOf(source []byte) map[[2]int]place {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	tokens := map[[2]int]place{}
	for {
		pos, tok, _ := s.Scan()
		if tok == token.EOF {
			return tokens
		}
		at := file.PositionFor(pos, false)
		tokens[[2]int{at.Line, at.Column}] = place{tok, at.Offset}
	}
}

func compare(a, b mutation) int {
	if c := strings.Compare(a.file, b.file); c != 0 {
		return c
	}
	if a.offset != b.offset {
		return a.offset - b.offset
	}
	return int(a.new) - int(b.new)
}

// apply returns the source with the mutation in it.
func (m mutation) apply(source []byte) []byte {
	return slices.Concat(source[:m.offset], []byte(m.new.String()), source[m.offset+len(m.old.String()):])
}

// shuffle brings the mutations into the order in which they are drawn. The same
// mutations and the same seed give the same order.
func shuffle(mutations []mutation, seed uint64) {
	slices.SortFunc(mutations, compare)
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(mutations), func(i, j int) { mutations[i], mutations[j] = mutations[j], mutations[i] })
}
