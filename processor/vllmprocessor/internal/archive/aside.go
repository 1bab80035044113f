package archive

import (
	"bytes"
	"context"

	"go.uber.org/zap"
)

// asideSuffix follows the key of a stored value that could not be read to its end. A later version of
// this project may have written it: then a collector that goes back to this version, and forward
// again, still has it. There is one such value for each kind of states, the newest.
const asideSuffix = ".unread"

// setAside keeps a value that could not be read to its end, before the next save replaces it. It
// returns fields for the log: the key in the storage under which the value stays.
func (a *archive) setAside(ctx context.Context, data []byte) []zap.Field {
	key := a.Key + asideSuffix
	if err := a.client.Set(ctx, key, data); err != nil {
		a.Failed()
		return []zap.Field{zap.NamedError("not_kept", err)}
	}
	return []zap.Field{zap.String("kept_for_the_other_version_as", key)}
}

// takeBack reads what an earlier version set aside, where this version can read it. A state that was
// saved since then counts more than the one that was set aside.
func (a *archive) takeBack(ctx context.Context) {
	data, err := a.client.Get(ctx, a.Key+asideSuffix)
	if err != nil || data == nil {
		return
	}
	all, err := Decode(data)
	if err != nil {
		return
	}
	for _, state := range all {
		if _, sound := a.Newest(state); !sound {
			return
		}
	}
	back := 0
	for key, state := range all {
		if _, known := a.kept[key]; !known {
			newest, _ := a.Newest(state)
			a.kept[key] = keptState{bytes.Clone(state), newest, newest, 0}
			back++
		}
	}
	if err := a.client.Delete(ctx, a.Key+asideSuffix); err != nil {
		a.Logger.Warn("what was set aside is read, but cannot be removed from the storage", zap.String("key", a.Key+asideSuffix), zap.Error(err))
	}
	if back > 0 {
		a.Logger.Info("what an earlier version of this program could not read continues", zap.String("key", a.Key), zap.Int("states", back))
	}
}
