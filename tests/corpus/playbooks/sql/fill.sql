DROP TABLE IF EXISTS {{ workload.table }};
CREATE TABLE {{ workload.table }} (n int);
INSERT INTO {{ workload.table }} SELECT generate_series(1, 5);
