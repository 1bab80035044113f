package judge

import "context"

func seek(ctx context.Context, s *Story, i int, objectives []objective, out *Played) error {
	return nil
}
