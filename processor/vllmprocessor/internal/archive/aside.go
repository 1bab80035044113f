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
// returns fields for the log: the key in the storage under which the value stays. another reports
// that a value of another version is there already, which this version cannot read either.
func (a *archive) setAside(ctx context.Context, data []byte, another bool) []zap.Field {
	key := a.Key + asideSuffix
	if another && ofThisForm(data) {
		// The disk has changed it. What is there may be whole.
		return []zap.Field{zap.String("not_kept_because_another_version_has_its_states_in", key)}
	}
	if err := a.client.Set(ctx, key, data); err != nil {
		a.Failed()
		return []zap.Field{zap.NamedError("not_kept", err)}
	}
	if a.readBack {
		// What was read from there is replaced, and nothing but memory has its states.
		a.readBack = false
		a.save(ctx)
	}
	return []zap.Field{zap.String("kept_for_the_other_version_as", key)}
}

// takeBack reads what an earlier version set aside, where this version can read it. A state that was
// saved since then counts more than the one that was set aside. It stays in the storage until its
// states are saved, so that a crash before that loses none. unread reports that one is there that
// this version cannot read.
func (a *archive) takeBack(ctx context.Context) (unread bool) {
	key := a.Key + asideSuffix
	data, err := a.client.Get(ctx, key)
	if err != nil {
		a.Logger.Warn("what another version of this program may have left in the storage cannot be read; it stays there, and the next start tries again",
			zap.String("key", key), zap.Error(err))
		return true
	}
	if data == nil {
		return false
	}
	all, err := Decode(data)
	if err != nil {
		return true
	}
	for _, state := range all {
		if _, sound := a.Newest(state); !sound {
			return true
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
	a.readBack = true
	if back > 0 {
		a.Logger.Info("what an earlier version of this program could not read continues", zap.String("key", a.Key), zap.Int("states", back))
	}
	return false
}

// removeReadBack removes what was taken back, once a save has its states. Where that fails, it stays: the
// next start finds nothing in it that is new, and its first save tries again.
func (a *archive) removeReadBack(ctx context.Context) {
	if !a.readBack {
		return
	}
	a.readBack = false
	key := a.Key + asideSuffix
	if err := a.client.Delete(ctx, key); err != nil {
		a.Failed()
		a.Logger.Warn("what was set aside is read, but cannot be removed from the storage", zap.String("key", key), zap.Error(err))
	}
}
