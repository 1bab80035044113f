package pools

import (
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

// mostNamed bounds the servers that a sentence names: as many as one reads at a glance.
const mostNamed = 5

// sentence names the servers that do not serve their users well, the worst first, and says where gateways hold
// requests back; empty where all is well.
func (p *pool) sentence() string {
	servers, last := 0, ""
	harmed := map[diagnose.Condition][]string{}
	for i := range p.members {
		m := &p.members[i]
		if m.server != last || servers == 0 {
			servers, last = servers+1, m.server // Its engines follow each other.
		}
		if c := m.Verdict.Condition; m.Harmed() || c == diagnose.Stalled || c == diagnose.Unreachable {
			if of := harmed[c]; len(of) == 0 || of[len(of)-1] != m.server {
				harmed[c] = append(of, m.server)
			}
		}
	}
	var parts []string
	room := mostNamed
	for _, c := range []diagnose.Condition{diagnose.Stalled, diagnose.Failing, diagnose.Unreachable, diagnose.Critical, diagnose.Degraded} {
		of := harmed[c]
		if len(of) == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s %s", len(of), map[bool]string{true: "is", false: "are"}[len(of) == 1], c)
		if shown := of[:min(room, len(of))]; len(shown) > 0 {
			part += ": " + strings.Join(shown, ", ")
			if more := len(of) - len(shown); more > 0 {
				part += fmt.Sprintf(" and %d more", more)
			}
			room -= len(shown)
		}
		parts = append(parts, part)
	}
	var said []string
	if len(parts) > 0 {
		said = append(said, fmt.Sprintf("Of %d servers %s.", servers, strings.Join(parts, "; ")))
	}
	if p.late {
		said = append(said, fmt.Sprintf("The gateway adds %.2g s until the first token (usual %.2g s); the servers need %.2g s.", p.delay.Gateway, p.usualDelay.usual(), p.delay.Engines))
	}
	return strings.Join(said, " ")
}
