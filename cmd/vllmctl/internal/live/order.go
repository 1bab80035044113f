package live

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Order is the order of the rows. Reverse turns it round.
type Order struct {
	By      Column
	Reverse bool
}

// Sort sorts rows. Numbers begin with the largest and texts with the first of the alphabet; a
// number that is not known is last in either direction. Rows that are equal are in the order
// of their names.
func Sort(rows []Row, order Order) {
	slices.SortFunc(rows, func(a, b Row) int { return order.compare(&a, &b) })
}

func (o Order) compare(a, b *Row) int {
	by := 0
	switch o.By {
	case Worst:
		by = cmp.Or(
			-cmp.Compare(a.urgency(), b.urgency()), cmp.Compare(precedence(a.Condition), precedence(b.Condition)))
	case ByServer:
	case ByModel:
		by = cmp.Compare(a.Model, b.Model)
	case ByCondition:
		by = byPrecedence(a.Condition, b.Condition)
	case ByCause:
		if by = lastly(a.Why() == "", b.Why() == ""); by != 0 {
			return by
		}
		by = cmp.Compare(a.Why(), b.Why())
	case ByAge:
		if by = lastly(a.Since.IsZero(), b.Since.IsZero()); by != 0 {
			return by
		}
		by = a.Since.Compare(b.Since)
	default:
		x, y := a.Values[columns[o.By].field], b.Values[columns[o.By].field]
		if by = lastly(math.IsNaN(x), math.IsNaN(y)); by != 0 {
			return by
		}
		by = -cmp.Compare(x, y)
	}
	if o.By == ByServer {
		by = byName(a, b)
	}
	if o.Reverse {
		by = -by
	}
	return cmp.Or(by, byName(a, b))
}

// lastly orders what is missing behind all others.
func lastly(a, b bool) int {
	switch {
	case a && !b:
		return 1
	case b && !a:
		return -1
	}
	return 0
}

// urgency is the severity. A server that cannot be read and about which the processor has not
// decided yet comes before those that are well.
func (r *Row) urgency() float64 {
	if r.Unread != "" {
		return max(float64(r.Severity), 1.5)
	}
	return float64(r.Severity)
}

// byName orders pools first, then servers by name, then engines by their number.
func byName(a, b *Row) int {
	return cmp.Or(
		lastly(a.Pool == "", b.Pool == ""), cmp.Compare(a.Pool, b.Pool),
		cmp.Compare(cmp.Or(a.Pod, a.Address), cmp.Or(b.Pod, b.Address)),
		cmp.Compare(len(a.Engine), len(b.Engine)), cmp.Compare(a.Engine, b.Engine),
		cmp.Compare(a.Model, b.Model), cmp.Compare(a.Key, b.Key))
}

// Filter returns the rows that have a text in what the table shows of them, or in their
// names, in capitals or not.
func Filter(rows []Row, text string) []Row {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return rows
	}
	var left []Row
	for i := range rows {
		r := &rows[i]
		all := strings.Join([]string{r.Name(), r.Address, r.Namespace, r.Pod, r.Model, r.Version, r.Condition, r.Why()}, "\x00")
		if strings.Contains(strings.ToLower(all), text) {
			left = append(left, *r)
		}
	}
	return left
}
