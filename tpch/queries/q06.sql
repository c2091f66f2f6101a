-- TPC-H Q6, forecasting revenue change: 1994, discount 0.06 +- 0.01, quantity below 24.
-- The bounds of the discount are written as literals: in floating point 0.06 + 0.01 is less than 0.07, and the sum would
-- miss a third of its rows.
SELECT
  sum(l_extendedprice * l_discount) AS revenue
FROM
  lineitem
WHERE
  l_shipdate >= '1994-01-01'
  AND l_shipdate < '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07
  AND l_quantity < 24;
