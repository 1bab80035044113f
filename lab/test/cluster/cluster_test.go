package cluster

import "testing"

func TestX(t *testing.T) {
	c := Start(t)
	out, err := c.Kubectl(t, "", "get", "all,cm", "-A")
	t.Log(out, err)
}
