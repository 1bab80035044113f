package discover

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// poll reads a list of targets at once and then after each interval, until ctx ends. It
// sends the groups if read reports a change.
func poll(
	ctx context.Context, interval time.Duration, up chan<- []*targetgroup.Group,
	read func(context.Context) (groups []*targetgroup.Group, changed bool),
) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		groups, changed := read(ctx)
		if ctx.Err() != nil {
			return
		}
		if changed {
			select {
			case up <- groups:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// objectWatch lists and watches objects of the Kubernetes API.
type objectWatch struct {
	objects dynamic.ResourceInterface
	// labels and fields select the objects.
	labels, fields string
	// seen is called for each object that is found or has changed, and for each that is
	// deleted or not selected any more.
	seen func(object *unstructured.Unstructured, deleted bool)
	// failed is called with each error of a list or a watch; both are tried again.
	failed func(error)
	// listed, if not nil, is called after each list with the number of objects.
	listed func(n int)
	// synced, if not nil, is called once when seen was called for all objects of the
	// first list.
	synced func()
	// trim, if not nil, removes from each object what seen does not need.
	trim cache.TransformFunc
}

// run watches until ctx ends.
func (w *objectWatch) run(ctx context.Context) {
	informer := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.FieldSelector = w.labels, w.fields
			list, err := w.objects.List(ctx, options)
			if err == nil && w.listed != nil {
				w.listed(len(list.Items))
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector, options.FieldSelector = w.labels, w.fields
			out, err := w.objects.Watch(ctx, options)
			return out, cancellable(err, &options)
		},
	}, &unstructured.Unstructured{}, 0)
	// The errors of these calls are only those of an informer that runs already.
	if w.trim != nil {
		_ = informer.SetTransform(w.trim)
	}
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { w.failed(err) })
	events, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.handle(object, false) },
		UpdateFunc: func(_, object any) { w.handle(object, false) },
		DeleteFunc: func(object any) { w.handle(object, true) },
	})
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	if w.synced != nil {
		wg.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), events.HasSynced) {
				w.synced()
			}
		})
	}
	informer.RunWithContext(ctx)
	wg.Wait()
}

// cancellable hides the kind of an error after which client-go waits for up to a minute
// without an end by its context: a streamed list while the API server is away or busy. A
// collector would be killed before it has ended. client-go then lists in the usual way,
// and that wait ends with the context.
func cancellable(err error, options *metav1.ListOptions) error {
	if options.SendInitialEvents == nil || !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) {
		return err
	}
	return errors.New(err.Error())
}

func (w *objectWatch) handle(object any, deleted bool) {
	// The last known state of an object that was deleted while the watch was broken.
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if item, ok := object.(*unstructured.Unstructured); ok {
		w.seen(item, deleted)
	}
}
