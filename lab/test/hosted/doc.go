// Package hosted has only tests of what the hosted project runs and shows: the workflows in
// .github, the script that compares the collector in an image with the one beside it, the
// owners of paths, and the templates.
package hosted
