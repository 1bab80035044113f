// Draws one dashboard of content/perses with Perses's own user interface, without its server:
// the page gets the dashboard and the answers of Prometheus from the test that drives it.
import { createRoot } from 'react-dom/client';
import { CssBaseline, GlobalStyles, ThemeProvider, Typography } from '@mui/material';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { BrowserRouter } from 'react-router-dom';
import { QueryParamProvider } from 'use-query-params';
import { ReactRouter6Adapter } from 'use-query-params/adapters/react-router-6';
import { ChartsProvider, generateChartsTheme, getTheme, SnackbarProvider, TimeZoneProvider } from '@perses-dev/components';
import { PluginRegistry, ReactRouterProvider } from '@perses-dev/plugin-system';
import { ViewDashboard } from '@perses-dev/dashboards';
import * as prometheus from '@perses-dev/prometheus-plugin';
import * as timeseries from '@perses-dev/timeseries-chart-plugin';
import * as stat from '@perses-dev/stat-chart-plugin';
import * as table from '@perses-dev/table-plugin';
import * as statusHistory from '@perses-dev/status-history-chart-plugin';

const modules = [prometheus, timeseries, stat, table, statusHistory] as any[];
const resources = modules.map((module) => module.getPluginModule());
const pluginLoader = {
  getInstalledPlugins: async () => resources,
  importPluginModule: async (resource: any) => modules[resources.indexOf(resource)],
};

const source = {
  kind: 'GlobalDatasource',
  metadata: { name: 'prometheus' },
  spec: {
    default: true,
    plugin: { kind: 'PrometheusDatasource', spec: { directUrl: location.origin + '/prometheus', scrapeInterval: '15s' } },
  },
};
const datasourceApi = {
  getDatasource: async () => undefined,
  getGlobalDatasource: async () => source,
  listDatasources: async () => [],
  listGlobalDatasources: async () => [source],
};

const parameters = new URLSearchParams(location.search);

async function draw(): Promise<void> {
  const answer = await fetch('/boards/' + parameters.get('board'));
  if (!answer.ok) {
    throw new Error('no such dashboard: ' + parameters.get('board'));
  }
  const dashboard = await answer.json();
  delete dashboard.spec.datasources;
  dashboard.metadata.project ??= 'vllm';
  for (const layout of dashboard.spec.layouts) {
    if (parameters.getAll('open').some((title) => layout.spec.display.title.startsWith(title))) {
      layout.spec.display.collapse.open = true;
    }
  }
  const theme = getTheme('light', { transitions: { create: () => 'none' } } as any);
  const queries = new QueryClient({
    defaultOptions: { queries: { refetchOnWindowFocus: false, retry: false, staleTime: Infinity } },
  });
  createRoot(document.getElementById('root')!).render(
    <ThemeProvider theme={theme}>
      <CssBaseline />
      <GlobalStyles styles={{ '*, *::before, *::after': { animation: 'none !important', transition: 'none !important', caretColor: 'transparent !important' } }} />
      <BrowserRouter>
        <ReactRouterProvider>
          <QueryClientProvider client={queries}>
            <QueryParamProvider adapter={ReactRouter6Adapter}>
              <TimeZoneProvider timeZone="UTC">
                <SnackbarProvider>
                  <ChartsProvider chartsTheme={generateChartsTheme(theme, { echartsTheme: { animation: false } as any })}>
                    <PluginRegistry
                      pluginLoader={pluginLoader as any}
                      defaultPluginKinds={{ Panel: 'TimeSeriesChart', TimeSeriesQuery: 'PrometheusTimeSeriesQuery' }}
                    >
                      <ViewDashboard
                        dashboardResource={dashboard}
                        datasourceApi={datasourceApi as any}
                        isReadonly={true}
                        isVariableEnabled={true}
                        isDatasourceEnabled={false}
                        dashboardTitleComponent={
                          <Typography variant="h2" sx={{ py: 1 }}>
                            {dashboard.spec.display?.name ?? dashboard.metadata.name}
                          </Typography>
                        }
                      />
                    </PluginRegistry>
                  </ChartsProvider>
                </SnackbarProvider>
              </TimeZoneProvider>
            </QueryParamProvider>
          </QueryClientProvider>
        </ReactRouterProvider>
      </BrowserRouter>
    </ThemeProvider>
  );
}

draw().catch((reason) => {
  document.body.textContent = 'ERROR ' + reason;
});
