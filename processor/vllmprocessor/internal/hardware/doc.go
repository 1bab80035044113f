// Package hardware knows what one GPU can do at most, and which resources run on
// which GPU. It is pure: a table and two look-ups.
package hardware
